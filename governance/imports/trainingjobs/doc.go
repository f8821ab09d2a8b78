// Package trainingjobs converts elastic training jobs of other operators to ElasticJobs:
// HyperPodPyTorchJobs of SageMaker HyperPod, and PyTorchJobs of Kubeflow. It reports what
// has no equivalent.
//
//	node ──Read──► ElasticJob, problems
//
// An ElasticJob has one pod template, so groups of replicas are merged if their templates
// are equal. The package is pure: no client, no context, no clock.
package trainingjobs
