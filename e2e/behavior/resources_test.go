package behavior_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const license = corev1.ResourceName("example.com/license")

// A team has quota of licenses, which no node reports, and of scratch space. Kueue admits
// what fits into both, and the next task when one has ended.
func otherResources(t *testing.T) {
	s := newScenario(t, 1, 8)
	m := s.newTeam("licensed", gpus(8), func(spec *v1alpha1.ComputeAllocationSpec, _ string) {
		spec.Sharing.Strategy = v1alpha1.DontLend
		spec.Quota[0].Resources = []v1alpha1.ResourceQuantity{
			{Name: string(license), Quantity: resource.MustParse("3")},
			{Name: string(corev1.ResourceEphemeralStorage), Quantity: resource.MustParse("1.5Gi")},
		}
	})
	first := m.submitRequesting("first", corev1.ResourceList{license: resource.MustParse("2")})
	first.isAdmitted()
	second := m.submitRequesting("second", corev1.ResourceList{license: resource.MustParse("2")})
	second.isPending("WaitingForQuota", "insufficient unused quota for example.com/license", "1 more needed")
	scratch := m.submitRequesting("scratch", corev1.ResourceList{license: resource.MustParse("1"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")})
	scratch.isAdmitted()
	more := m.submitRequesting("more", corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")})
	more.isPending("WaitingForQuota", "insufficient unused quota for ephemeral-storage")
	first.finish()
	second.isAdmitted()
	more.isPending("WaitingForQuota")
	scratch.finish()
	more.isAdmitted()
}

// submitRequesting creates a Job of one pod with these requests.
func (m *team) submitRequesting(name string, requests corev1.ResourceList) *task {
	m.t.Helper()
	k := m.jobOf(name, 1, "")
	k.job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: requests}
	if err := m.cluster.Client.Create(m.t.Context(), k.job); err != nil {
		m.t.Fatal(err)
	}
	m.tasks = append(m.tasks, k)
	return k
}
