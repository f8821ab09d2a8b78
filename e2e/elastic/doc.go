// Package elastic has tests only: ElasticJobs on the real Kueue, with the console's
// controllers.
package elastic
