package catalog_test

import (
	"slices"
	"testing"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type list = map[corev1.ResourceName]string

// ready returns the node as ready, with more labels.
func ready(n corev1.Node, labels ...string) corev1.Node {
	n = with(n, labels...)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func TestPhysicalAndReadyResources(t *testing.T) {
	const p4d = "ml.p4d.24xlarge"
	whole := list{"cpu": "96", "memory": "1100Gi", "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4"}
	partitioned := list{"cpu": "96", "nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "49", "vpc.amazonaws.com/efa": "4"}
	cordoned := ready(node(p4d, whole))
	cordoned.Spec.Unschedulable = true
	unknown := ready(node(p4d, whole))
	unknown.Status.Conditions[0].Status = corev1.ConditionUnknown
	type figures map[string]resources.Amount
	cases := map[string]struct {
		nodes        []corev1.Node
		wantPhysical figures // except vCPU and memory, which are always those of the table
		wantReady    figures
	}{
		"whole":                          {[]corev1.Node{ready(node(p4d, whole))}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, figures{"cpu": 96_000, "memory": 1152 << 30, "nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}},
		"cordoned":                       {[]corev1.Node{cordoned}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, nil},
		"unknown":                        {[]corev1.Node{unknown}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, nil},
		"no condition":                   {[]corev1.Node{node(p4d, whole)}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, nil},
		"no device plugin":               {[]corev1.Node{ready(node(p4d, list{"cpu": "96"}))}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, figures{"cpu": 96_000, "memory": 1152 << 30}},
		"more devices than in the table": {[]corev1.Node{ready(node(p4d, list{"nvidia.com/gpu": "56", "vpc.amazonaws.com/efa": "5"}))}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, figures{"cpu": 96_000, "memory": 1152 << 30, "nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}},
		"partitioned":                    {[]corev1.Node{ready(node(p4d, partitioned), "nvidia.com/mig.config=all-1g.5gb", "nvidia.com/mig.config.state=success")}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4, "nvidia.com/mig-1g.5gb": 49}, figures{"cpu": 96_000, "memory": 1152 << 30, "nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": 4, "nvidia.com/mig-1g.5gb": 49}},
		"being partitioned":              {[]corev1.Node{ready(node(p4d, partitioned), "nvidia.com/mig.config=all-1g.5gb", "nvidia.com/mig.config.state=pending")}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4, "nvidia.com/mig-1g.5gb": 49}, nil},
		"MIG disabled":                   {[]corev1.Node{ready(node(p4d, whole), "nvidia.com/mig.config=all-disabled")}, figures{"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}, figures{"cpu": 96_000, "memory": 1152 << 30, "nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool, _ := of(tc.nodes...).Pool(p4d)
			tc.wantPhysical["cpu"], tc.wantPhysical["memory"] = 96_000, 1152<<30
			if diff := cmp.Diff(tc.wantPhysical, figures(above0(pool.Physical))); diff != "" {
				t.Errorf("physical (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantReady, figures(above0(pool.Ready))); diff != "" {
				t.Errorf("ready (-want +got):\n%s", diff)
			}
		})
	}
}

// above0 returns the figures above 0; nil if there are none.
func above0(all map[string]resources.Amount) map[string]resources.Amount {
	var some map[string]resources.Amount
	for name, n := range all {
		if n > 0 {
			if some == nil {
				some = map[string]resources.Amount{}
			}
			some[name] = n
		}
	}
	return some
}

// The largest figures that a node of a type outside the table ever reported are
// kept. Types of the table are not kept.
func TestReportedNeverShrinks(t *testing.T) {
	full := node("lab.big", list{"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"})
	partitioned := node("lab.big", list{"cpu": "63500m", "memory": "500Gi", "nvidia.com/mig-1g.10gb": "56"})
	kept := catalog.Reported([]corev1.Node{full, node(p5, list{"cpu": "1"}), node("", list{"cpu": "1"})}, typeOf, nil)
	kept = catalog.Reported([]corev1.Node{partitioned}, typeOf, kept)
	kept = catalog.Reported(nil, typeOf, kept)
	if len(kept) != 1 || kept[0].InstanceType != "lab.big" {
		t.Fatalf("got kept types %+v, want lab.big only", kept)
	}
	got := map[string]string{}
	for name, q := range kept[0].Capacity {
		got[string(name)] = q.String()
	}
	if diff := cmp.Diff(map[string]string{"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb": "56"}, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	c := catalog.New(catalog.Input{Nodes: []corev1.Node{ready(partitioned)}, InstanceTypeLabel: typeOf, ReportedTypes: kept})
	pool, _ := c.Pool("lab.big")
	if pool.Instance.Accelerators != 8 || pool.Instance.MilliCPU != 64_000 || pool.Physical[catalog.GPU] != 8 || pool.Ready[catalog.GPU] != 0 || len(pool.Instance.Partitions) != 1 {
		t.Errorf("got pool %+v", pool)
	}
	withoutNodes := catalog.New(catalog.Input{InstanceTypeLabel: typeOf, ReportedTypes: kept})
	if pool, ok := withoutNodes.Pool("lab.big"); !ok || pool.Nodes != 0 || pool.Instance.Accelerators != 8 {
		t.Errorf("without nodes: got pool %+v, %t", pool, ok)
	}
}

// What nodes report can be allocated, whatever the table of instance types has, under the
// names of NVIDIA's device plugin.
func TestReportedPartitions(t *testing.T) {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("192"), "memory": resource.MustParse("2048Gi"), "nvidia.com/gpu": resource.MustParse("0")}
	for _, name := range []string{"nvidia.com/mig-1g.24gb", "nvidia.com/mig-1g.24gb.gfx", "nvidia.com/mig-1g.24gb.me.all", "nvidia.com/mig-2g.48gb-me"} {
		capacity[corev1.ResourceName(name)] = resource.MustParse("8")
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "g7e-0", Labels: map[string]string{typeOf: "ml.g7e.48xlarge"}}, Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity}}
	pool, ok := catalog.New(catalog.Input{Nodes: []corev1.Node{node}, InstanceTypeLabel: typeOf}).Pool("ml.g7e.48xlarge")
	if want := []string{"mig-1g.24gb", "mig-1g.24gb.gfx", "mig-1g.24gb.me.all", "mig-2g.48gb-me"}; !ok || !slices.Equal(pool.Instance.Partitions, want) || pool.Instance.Accelerators != 8 {
		t.Errorf("got %+v, want the partitions %v", pool.Instance, want)
	}
	for _, profile := range pool.Instance.Partitions {
		if !catalog.PartitionProfile.MatchString(profile) {
			t.Errorf("%s is no profile", profile)
		}
	}
}
