// Package rejection reads why the API server rejected a write: by the schema, an
// admission webhook such as Kueue's, or an admission policy.
package rejection
