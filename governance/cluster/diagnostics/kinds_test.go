package diagnostics

import (
	"context"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/kueue/enforcement"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Findings name the kinds that members may create in vain, or could be allowed to create,
// and the command that changes it with and without Helm.
func TestCheckKinds(t *testing.T) {
	kind := func(name string, installed, integrated, allowed Answer) KindState {
		k, _ := enforcement.TaskKind(name)
		return KindState{JobKind: k, Installed: installed, Integrated: integrated, Allowed: allowed}
	}
	for name, tc := range map[string]struct {
		kinds   []KindState
		release string
		want    map[string]string // fixes by title
	}{
		"nothing": {kinds: []KindState{kind("Job", Yes, Yes, Yes), kind("RayJob", No, No, No), kind("JobSet", Unknown, Yes, Yes), kind("TFJob", Yes, Yes, Unknown)}, want: map[string]string{}},
		"without Helm": {
			kinds: []KindState{kind("Job", Yes, Yes, Yes), kind("JobSet", Yes, Yes, No), kind("RayJob", No, Yes, Yes), kind("TFJob", Yes, No, Yes)},
			want: map[string]string{
				"Members may create kinds that do not run here: RayJob, TFJob": "kubectl label clusterrole kuota-team-member-rayjobs kuota.dev/aggregate-to-team-member-\nkubectl label clusterrole kuota-team-member-tfjobs kuota.dev/aggregate-to-team-member-\n",
				"Members may not create JobSet":                                "kubectl label clusterrole kuota-team-member-jobsets kuota.dev/aggregate-to-team-member=true\n",
			},
		},
		"with Helm": {
			kinds: []KindState{kind("Job", Yes, Yes, Yes), kind("ElasticJob", Yes, Yes, Yes), kind("JobSet", Yes, Yes, No)}, release: "gpu",
			want: map[string]string{"Members may not create JobSet": "# With the chart of the running version, and the values of the release:\nhelm upgrade gpu deploy/chart --namespace kuota-system --reset-then-reuse-values --set 'memberKinds={Job,ElasticJob,JobSet}'\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := whole()
			s.Kinds, s.HelmRelease = tc.kinds, tc.release
			got := map[string]string{}
			for _, f := range Check(s) {
				got[f.Title] = f.Fix
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fixes (-want +got):\n%s", diff)
			}
		})
	}
}

// A rule counts if it allows to create any object of the kind.
func TestAllowsCreation(t *testing.T) {
	job, _ := enforcement.TaskKind("Job")
	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want bool
	}{
		"the kind":        {rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "create"}}, true},
		"everything":      {rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, true},
		"reading":         {rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get"}}, false},
		"another group":   {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"jobs"}, Verbs: []string{"create"}}, false},
		"a single object": {rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}, ResourceNames: []string{"one"}}, false},
	} {
		if got := job.AllowsCreation([]rbacv1.PolicyRule{tc.rule}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// fakeReader is a reader with these objects.
type fakeReader struct {
	client.Reader
	queues []kueue.ClusterQueue
	nodes  []corev1.Node
	tasks  []kueue.Workload
}

func (r fakeReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *kueue.ClusterQueueList:
		list.Items = r.queues
	case *corev1.NodeList:
		list.Items = r.nodes
	case *kueue.WorkloadList:
		list.Items = r.tasks
	}
	return nil
}

func TestResourceCoverage(t *testing.T) {
	one := resource.MustParse("1")
	node := corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": one, "pods": one, "nvidia.com/mig-1g.5gb": one, "aws.amazon.com/neuron": one, "hugepages-2Mi": {}}}}
	task := func(finished metav1.ConditionStatus) kueue.Workload {
		return kueue.Workload{
			Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/nic": one, "cpu": one}}},
			}}}}}},
			Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{Type: kueue.WorkloadFinished, Status: finished}}},
		}
	}
	in := fakeReader{nodes: []corev1.Node{node}, tasks: []kueue.Workload{task(metav1.ConditionFalse), task(metav1.ConditionTrue)}}
	covered, uncovered, err := ResourceCoverage(t.Context(), in)
	if err != nil || len(covered)+len(uncovered) > 0 {
		t.Errorf("without a ClusterQueue: %v, %v, %v", covered, uncovered, err)
	}
	in.queues = []kueue.ClusterQueue{
		{Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"memory", "cpu"}}, {CoveredResources: []corev1.ResourceName{"aws.amazon.com/neurondevice"}}}}},
		{Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}}}}},
	}
	covered, uncovered, err = ResourceCoverage(t.Context(), in)
	if err != nil || !slices.Equal(covered, []string{"aws.amazon.com/neurondevice", "cpu", "memory"}) || !slices.Equal(uncovered, []UncoveredResource{{"example.com/nic", 1}, {"nvidia.com/mig-1g.5gb", 0}}) {
		t.Errorf("got %v, %v, %v", covered, uncovered, err)
	}
}
