// Package submit submits tasks. It completes a request with defaults, writes it as
// manifests of the kinds that Kueue manages, predicts the outcome, and creates the
// Job, ElasticJob or service with the permissions of the user.
//
//	Request ──Team.Plan──▶ Plan ──Manifests, HyperPodCommand──▶ text to copy
//	                        ├───Service.Check────▶ Verdict (admitted, preempts, waits, never)
//	                        └───Service.Submit───▶ Job of batch/v1, suspended, ElasticJob, or service, and its script
//
// It must not decide on admission, which is Kueue's, and it creates no other objects.
package submit
