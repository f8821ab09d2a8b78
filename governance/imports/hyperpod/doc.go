// Package hyperpod converts the compute quotas and scheduler configurations of
// SageMaker HyperPod task governance to Kuota's allocations and policy: the JSON of
// its API, or commands of the AWS CLI. It reports what has no equivalent.
//
//	AWS CLI ──ParseCommands──► nodes ──Allocation, Policy──► objects within bounds
//
// Package manifest sanitizes the result; the paths of its problems are converted
// back to HyperPod's names. The package is pure: no client, no context, no clock.
package hyperpod
