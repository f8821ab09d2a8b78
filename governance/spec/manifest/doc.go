// Package manifest reads and writes Kuota's own resources as YAML, and sanitizes
// specs of any source: it removes the values that the CRDs do not allow, and
// reports them.
//
//	object ──AllocationYAML, PolicyYAML, ElasticJobYAML──► YAML that kubectl applies
//	node ──Read──► object ──SanitizeSpec, SanitizePolicy──► object within bounds
//	node ──ReadElasticJob──► ElasticJob ──CheckElasticJob──► problems
//
// It contains no other notation. It is pure: no client, no context, no clock.
package manifest
