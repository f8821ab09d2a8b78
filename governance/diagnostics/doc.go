// Package diagnostics says how the cluster, Kueue and the console are set up, and
// what is missing: what each gap costs, and what to type to close it. It only
// looks. Gaps are a pure function of what was seen.
package diagnostics
