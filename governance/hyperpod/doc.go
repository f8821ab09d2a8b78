// Package hyperpod reads what SageMaker HyperPod's API writes of task
// governance, compute quotas and scheduler configurations, as Kuota's
// allocations and policy. What has no counterpart is told.
//
// It is pure: no client, no context, no clock.
package hyperpod
