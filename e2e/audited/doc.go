// Package audited runs a console that receives the audit events of the real API server.
package audited
