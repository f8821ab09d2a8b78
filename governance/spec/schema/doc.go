// Package schema validates Kuota's custom resources before they are written: by the
// schema and the CEL rules of their CRDs, with the API server's own code.
//
// It knows nothing of the cluster: instance types, pools and other teams are validated
// where they are read. The dry run of the API server decides, since its CRDs may be of
// another version.
package schema
