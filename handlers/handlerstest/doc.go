// Package handlerstest serves the handlers over backends in memory, for tests of the
// packages of pages. Backend is what Serve serves; its fields are what the backends
// return and what they recorded.
package handlerstest
