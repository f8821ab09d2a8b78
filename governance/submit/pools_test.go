package submit

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// twoPools is vision with a second pool of GPUs, before the first in the queue.
func twoPools() Team {
	t := vision()
	t.Pools = append([]QueuePool{poolOf("ml.g6.12xlarge")}, t.Pools...)
	return t
}

func TestAnyOfPools(t *testing.T) {
	r := train()
	r.OtherPools = []string{"ml.g6.12xlarge"}
	plan, wrong := twoPools().Plan(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	spec := plan.Job().Spec.Template.Spec
	term := func(value string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: catalog.InstanceTypeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
	}
	want := []corev1.NodeSelectorTerm{term("ml.g6.12xlarge"), term("ml.p5.48xlarge")}
	if diff := cmp.Diff(want, spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); diff != "" || spec.NodeSelector != nil {
		t.Errorf("got node selector %v, terms (-want +got):\n%s", spec.NodeSelector, diff)
	}
	if len(spec.Tolerations) != 1 || spec.Tolerations[0].Key != "gpu" {
		t.Errorf("got tolerations %v", spec.Tolerations)
	}
	// ml.g6.12xlarge has less for each GPU, and no network devices to share.
	if diff := cmp.Diff(quota.Resources{catalog.GPU: 2, catalog.CPU: 24_000, catalog.Memory: 96 * catalog.GiB}, plan.PodResources); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if line, why := plan.HyperPodCommand(); line != "" || !strings.Contains(why, "one instance type") {
		t.Errorf("HyperPod CLI: got %q, %q", line, why)
	}
}

// The minimum of an elastic task runs in the first pool, and its growth in any.
func TestElasticInAnyOfPools(t *testing.T) {
	r := train()
	r.OtherPools, r.Elastic = []string{"ml.g6.12xlarge"}, policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 8 })
	team := twoPools()
	plan, wrong := team.Plan(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	e := plan.ElasticJob()
	if diff := cmp.Diff(map[string]string{catalog.InstanceTypeLabel: "ml.p5.48xlarge"}, e.Spec.BaseNodeSelector); diff != "" || e.Spec.Template.Spec.NodeSelector != nil || e.Spec.Template.Spec.Affinity == nil {
		t.Errorf("template %+v, nodes of the minimum (-want +got):\n%s", e.Spec.Template.Spec, diff)
	}
	if minimum := plan.proposal(plan.Pods).PodSets[0].Spec; minimum.Affinity != nil || !maps.Equal(minimum.NodeSelector, e.Spec.BaseNodeSelector) {
		t.Errorf("the minimum is checked as %+v", minimum)
	}
	read, _, wrong := team.PlanElasticJob(e)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if again := read.Express(); read.Pool != "ml.p5.48xlarge" || again.Pool != read.Pool || !slices.Equal(again.OtherPools, r.OtherPools) {
		t.Errorf("read as %s and expressed as %s or %v", read.Pool, again.Pool, again.OtherPools)
	}
}

func TestPoolsThatCannotBeCombined(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Team, *Request)
		want   string
	}{
		"no such pool":    {func(_ *Team, r *Request) { r.OtherPools = []string{"ml.trn1.32xlarge"} }, "has no pool ml.trn1.32xlarge"},
		"no accelerators": {func(_ *Team, r *Request) { r.OtherPools = []string{"ml.c5.2xlarge"} }, "has other accelerators"},
		"no such part": {func(_ *Team, r *Request) {
			r.PerPod = v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.10gb", Count: 1}}
		}, "has no mig-1g.10gb"},
		"nodes without labels": {func(t *Team, _ *Request) { t.Pools[0].NodeSelector = nil }, "have no labels"},
	} {
		t.Run(name, func(t *testing.T) {
			team, r := twoPools(), train()
			r.OtherPools = []string{"ml.g6.12xlarge"}
			tc.change(&team, &r)
			_, wrong := team.Plan(r)
			if len(wrong) == 0 || wrong[0].Path != "otherPools" || !strings.Contains(wrong[0].Message, tc.want) {
				t.Errorf("got %v, want %q at otherPools", wrong, tc.want)
			}
		})
	}
}
