// Package crds has the CRDs of Kuota's custom resources, which `make generate` writes
// here.
package crds

import "embed"

// Files are the CRDs, one YAML file for each.
//
//go:embed *.yaml
var Files embed.FS
