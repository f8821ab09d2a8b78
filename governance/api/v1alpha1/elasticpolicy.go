package v1alpha1

// MaxElasticJobName is the longest name of an ElasticJob: the names of its Jobs are
// longer.
const MaxElasticJobName = 47

// The bounds of an ElasticPolicy.
const (
	MaxReplicas       = 10_000
	MaxSizes          = 64
	MaxTimeoutSeconds = 86_400
	MaxBackoffSeconds = 604_800
)

// DefaultElasticPolicy returns a policy with the defaults of the CRD, and no sizes.
func DefaultElasticPolicy() ElasticPolicy {
	return ElasticPolicy{
		GracefulShutdownTimeoutInSeconds: 30, ScalingTimeoutInSeconds: 60, FaultyScaleDownTimeoutInSeconds: 30,
		MinStablePeriodSeconds: 60, BackoffMaxSeconds: 3600,
	}
}
