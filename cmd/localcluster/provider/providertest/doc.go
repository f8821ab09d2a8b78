// Package providertest signs in at a provider the way a browser and the console
// do together, for tests. It knows the protocol and the names of the form's
// fields, and nothing of how the provider is made.
package providertest
