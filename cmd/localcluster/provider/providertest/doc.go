// Package providertest signs in at a provider as a browser and the console do
// together, for tests. It depends on the protocol and on the names of the form's
// fields only.
package providertest
