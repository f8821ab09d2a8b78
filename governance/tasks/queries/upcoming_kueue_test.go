package queries

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/tasks/index"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// randomCohort is a cohort of teams that wait for what a lender uses of its own quota.
// Kueue preempts nothing in it. It may be a tree of Cohorts.
type randomCohort struct {
	simulate.Snapshot
	client.Reader
	Remaining map[string]time.Duration
	random    *rand.Rand
	fair      bool
}

func newRandomCohort(seed uint64, fair, nested bool) *randomCohort {
	c := &randomCohort{random: rand.New(rand.NewPCG(seed, 1)), fair: fair, Remaining: map[string]time.Duration{}}
	c.Time = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	c.Flavors = []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}, {ObjectMeta: metav1.ObjectMeta{Name: "g6"}}}
	c.Cohorts = []*kueue.Cohort{{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}}
	if fair {
		c.Configuration.FairSharing = &config.FairSharing{}
	}
	teams, lent := 2+c.random.IntN(4), 0
	for i := range teams {
		name := fmt.Sprintf("team-%d", i)
		own := c.random.IntN(4)
		c.team(name, own, int64(c.random.IntN(4)))
		for j := range own {
			c.task(name, fmt.Sprintf("runs-%d", j), 100, name)
		}
		for j := range c.random.IntN(8) {
			c.task(name, fmt.Sprintf("waits-%d", j), int32(c.random.IntN(3)), "")
			lent++
		}
	}
	c.team("lender", lent, 1)
	if nested {
		c.nest()
	}
	for i := range lent { // one GPU becomes free after the other
		c.task("lender", fmt.Sprintf("ends-%d", i), 100, "lender")
		c.Remaining[fmt.Sprintf("lender/ends-%d", i)] = time.Duration(i+1) * time.Minute
	}
	return c
}

// nest puts the teams into up to three levels of Cohorts, some of which have quota.
func (c *randomCohort) nest() {
	for i := range 1 + c.random.IntN(5) {
		o := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("d%d", i)}}
		o.Spec.ParentName = kueue.CohortReference(c.Cohorts[c.random.IntN(min(len(c.Cohorts), 3))].Name)
		o.Spec.FairSharing = &kueue.FairSharing{Weight: resource.NewQuantity(int64(c.random.IntN(4)), resource.DecimalSI)}
		o.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"}, Flavors: []kueue.FlavorQuotas{{Name: "p5", Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: *resource.NewQuantity(int64(c.random.IntN(3)), resource.DecimalSI)}}}}}}
		c.Cohorts = append(c.Cohorts, o)
	}
	for _, q := range c.ClusterQueues {
		if q.Name != "lender" { // what becomes free is as far from all
			q.Spec.CohortName = kueue.CohortReference(c.Cohorts[c.random.IntN(len(c.Cohorts))].Name)
		}
	}
	// The reserves are used too, so that nothing is free at first.
	for i, o := range c.Cohorts[1:] {
		for j := range o.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Value() {
			c.task("lender", fmt.Sprintf("fills-%d-%d", i, j), 100, "lender")
		}
	}
}

func (c *randomCohort) team(name string, gpus int, weight int64) {
	quantity := func(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
	flavors := []kueue.FlavorQuotas{
		{Name: "g6", Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: quantity(0), BorrowingLimit: ptr.To(quantity(0))}}},
		{Name: "p5", Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: quantity(gpus)}}},
	}
	if name == "lender" || c.random.IntN(2) == 0 {
		flavors = flavors[1:]
	}
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: "shared", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO, FairSharing: &kueue.FairSharing{Weight: resource.NewQuantity(weight, resource.DecimalSI)},
		Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyNever, ReclaimWithinCohort: kueue.PreemptionPolicyNever},
		FlavorFungibility: &kueue.FlavorFungibility{WhenCanBorrow: kueue.TryNextFlavor, WhenCanPreempt: kueue.TryNextFlavor},
		ResourceGroups:    []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"}, Flavors: flavors}},
	}}
	if c.fair {
		q.Status.FairSharing = &kueue.FairSharingStatus{}
	}
	c.ClusterQueues = append(c.ClusterQueues, q)
	c.Namespaces = append(c.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	c.LocalQueues = append(c.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)}})
}

// task adds a task of one GPU, which runs if it is in a queue.
func (c *randomCohort) task(team, name string, priority int32, in string) {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	created := c.Time.Add(-time.Duration(len(c.Workloads)*7919%100_000+1) * time.Second) // all different
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID(team + "-" + name), CreationTimestamp: metav1.NewTime(created)},
		Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: &priority, Active: ptr.To(true), PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{},
			Containers:   []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: one}}}}}}}},
	}
	if in != "" {
		w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(in), PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1),
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "p5"}, ResourceUsage: one}}}
		for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(created), Reason: condition})
		}
	}
	c.Workloads = append(c.Workloads, w)
}

func (c *randomCohort) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *kueue.ClusterQueueList:
		for _, o := range c.ClusterQueues {
			list.Items = append(list.Items, *o)
		}
	case *kueue.CohortList:
		for _, o := range c.Cohorts {
			list.Items = append(list.Items, *o)
		}
	case *kueue.LocalQueueList:
		for _, o := range c.LocalQueues {
			list.Items = append(list.Items, *o)
		}
	}
	return nil
}

func (c *randomCohort) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if local, ok := o.(*kueue.LocalQueue); ok {
		local.Spec.ClusterQueue = kueue.ClusterQueueReference(key.Namespace)
	}
	return nil // every flavor, without labels and taints
}

// TestUpcomingIsKueuesOrder checks the order of waiting tasks against the order in which
// Kueue's scheduler admits them when one accelerator after the other becomes free.
func TestUpcomingIsKueuesOrder(t *testing.T) {
	compared := 0
	for seed := range uint64(80) {
		for _, fair := range []bool{false, true} {
			nested := seed%2 == 1
			c := newRandomCohort(seed, fair, nested)
			x := index.New(func() time.Time { return c.Time })
			for _, w := range c.Workloads {
				x.SetWorkload(w.DeepCopy(), true)
			}
			s := &Service{}
			u, err := s.upcoming(t.Context(), viewer{scope: access.Scope{All: true}, index: x, reader: c}, UpcomingQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for _, item := range u.Items {
				got = append(got, item.Namespace+"/"+item.Name)
			}
			out, err := engine.Run(t.Context(), &c.Snapshot, engine.Options{Horizon: 24 * time.Hour, Remaining: c.Remaining})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range out.Events {
				if e.Kind == simulate.Started {
					want = append(want, e.Workload)
				}
			}
			compared += len(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, fair sharing %t, nested %t: order of waiting tasks (-Kueue +Kuota):\n%s", seed, fair, nested, diff)
			}
		}
	}
	t.Logf("%d tasks were admitted in the order that was listed", compared)
}
