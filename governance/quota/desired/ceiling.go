package desired

import (
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
)

// CeilingName is the name of the ResourceQuota and the LimitRange of a namespace
// ceiling.
const CeilingName = "kuota-ceiling"

// The default requests of a container: once a namespace has a ceiling on cpu and
// memory, Kubernetes rejects pods without requests for them.
var (
	defaultCPU    = resource.MustParse("100m")
	defaultMemory = resource.MustParse("128Mi")
)

// ceiling returns the ResourceQuota that limits the requests of all pods of a
// namespace to the nominal quota and borrowing limits of the team and its shares, over all
// their pools, and the LimitRange with default requests.
func ceiling(team, namespace string, resolved quota.Resolved) (*applycore.ResourceQuotaApplyConfiguration, *applycore.LimitRangeApplyConfiguration) {
	total, resolved := quota.Resources{}, resolved.Total()
	for _, pool := range resolved.Pools {
		total.Add(pool.Nominal)
		total.Add(pool.BorrowingLimit)
	}
	hard := corev1.ResourceList{}
	for _, name := range resolved.Covered() {
		switch {
		case name == string(corev1.ResourcePods):
			hard[corev1.ResourcePods] = total.Quantity(name)
		case name == catalog.CPU || resources.InBytes(name) || strings.Contains(name, "/"):
			hard[corev1.ResourceName("requests."+name)] = total.Quantity(name)
		} // Kubernetes counts no resources that only Kueue knows
	}
	bound := applycore.ResourceQuota(CeilingName, namespace).
		WithLabels(queueLabels(team)).
		WithSpec(applycore.ResourceQuotaSpec().WithHard(hard))
	bound.WithAnnotations(map[string]string{AnnotationDesired: digest(bound.Spec)})

	defaults := applycore.LimitRange(CeilingName, namespace).
		WithLabels(queueLabels(team)).
		WithSpec(applycore.LimitRangeSpec().WithLimits(applycore.LimitRangeItem().
			WithType(corev1.LimitTypeContainer).
			WithDefaultRequest(corev1.ResourceList{catalog.CPU: defaultCPU, catalog.Memory: defaultMemory})))
	defaults.WithAnnotations(map[string]string{AnnotationDesired: digest(defaults.Spec)})
	return bound, defaults
}
