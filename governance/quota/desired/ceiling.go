package desired

import (
	"maps"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
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

// ceiling returns the ResourceQuota that limits the requests of all pods of a namespace, and
// the LimitRange with default requests, if it limits resources that pods need not request.
func ceiling(team, namespace string, spec *v1alpha1.ComputeAllocationSpec, resolved quota.Resolved) (*applycore.ResourceQuotaApplyConfiguration, *applycore.LimitRangeApplyConfiguration) {
	hard := corev1.ResourceList{}
	if spec.NamespaceCeiling {
		hard = hardOf(resolved)
	}
	for _, bound := range spec.Ceiling {
		hard[hardName(bound.Name)] = bound.Quantity
	}
	bound := applycore.ResourceQuota(CeilingName, namespace).
		WithLabels(queueLabels(team)).
		WithSpec(applycore.ResourceQuotaSpec().WithHard(hard))
	bound.WithAnnotations(map[string]string{AnnotationDesired: digest(bound.Spec)})

	standard := corev1.ResourceList{catalog.CPU: defaultCPU, catalog.Memory: defaultMemory}
	maps.DeleteFunc(standard, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, limited := hard[hardName(string(name))]
		return !limited
	})
	if len(standard) == 0 {
		return bound, nil
	}
	defaults := applycore.LimitRange(CeilingName, namespace).
		WithLabels(queueLabels(team)).
		WithSpec(applycore.LimitRangeSpec().WithLimits(applycore.LimitRangeItem().
			WithType(corev1.LimitTypeContainer).
			WithDefaultRequest(standard)))
	defaults.WithAnnotations(map[string]string{AnnotationDesired: digest(defaults.Spec)})
	return bound, defaults
}

// hardName returns the name that a resource has in a ResourceQuota.
func hardName(name string) corev1.ResourceName {
	if name == string(corev1.ResourcePods) {
		return corev1.ResourcePods
	}
	return corev1.ResourceName("requests." + name)
}

// hardOf returns the nominal quota and borrowing limits of a team and its shares, over all
// their pools.
func hardOf(resolved quota.Resolved) corev1.ResourceList {
	total, resolved := quota.Resources{}, resolved.Total()
	for _, pool := range resolved.Pools {
		total.Add(pool.Nominal)
		total.Add(pool.BorrowingLimit)
	}
	hard := corev1.ResourceList{}
	for _, name := range resolved.Covered() {
		if name == string(corev1.ResourcePods) || name == catalog.CPU || resources.InBytes(name) || strings.Contains(name, "/") { // Kubernetes counts no resources that only Kueue knows
			hard[hardName(name)] = total.Quantity(name)
		}
	}
	return hard
}
