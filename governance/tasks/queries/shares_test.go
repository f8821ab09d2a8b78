package queries

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/quota"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// inProcess is Kueue's scheduler in the process of the test.
type inProcess struct{ engine.Engine }

func (*inProcess) Snapshot(context.Context) (*simulate.Snapshot, error) { return nil, nil }

func (p *inProcess) Ask(context.Context, string, *simulate.Question) (*simulate.Report, *simulate.Snapshot, error) {
	return nil, nil, nil
}

func (*inProcess) Disagrees(string, *simulate.Snapshot, *simulate.Question) {}

// TestNextForIdleCompute has two teams with weights: the team that would borrow less
// by its weight gets idle compute next, although its task was submitted later.
func TestNextForIdleCompute(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const gpu = "nvidia.com/gpu"
	s := &simulate.Snapshot{Time: now, Flavors: []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "p5"}}}}
	s.Configuration.FairSharing = &config.FairSharing{}
	for i, weight := range []int64{10, 40} {
		team := fmt.Sprintf("team-%d", i)
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
		quotas := []kueue.ResourceQuota{}
		for name, amount := range map[corev1.ResourceName]string{gpu: "0", "cpu": "4"} {
			quotas = append(quotas, kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse(amount)})
		}
		s.ClusterQueues = append(s.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: kueue.ClusterQueueSpec{
			CohortName: "kuota", NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO, FairSharing: &kueue.FairSharing{Weight: resource.NewQuantity(weight, resource.DecimalSI)},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{quotas[0].Name, quotas[1].Name}, Flavors: []kueue.FlavorQuotas{{Name: "p5", Resources: quotas}}}},
		}})
		s.LocalQueues = append(s.LocalQueues, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(team)}})
		s.Workloads = append(s.Workloads, &kueue.Workload{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "task", UID: types.UID(team), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour + time.Duration(i)*time.Minute))},
			Spec: kueue.WorkloadSpec{QueueName: "queue", Priority: new(int32(10)), Active: new(true), PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: resource.MustParse("3"), "cpu": resource.MustParse("8")}}}}}}}}},
		})
	}
	fr := quota.FlavorResource{Flavor: "p5", Resource: gpu}
	if got := wanted(s); len(got) != 1 || got[0] != fr {
		t.Fatalf("wanted %v, want %v", got, fr)
	}
	service := &Service{Simulator: &inProcess{}}
	next, err := service.next(t.Context(), s, fr)
	if err != nil {
		t.Fatal(err)
	}
	if next.amount != 3 || len(next.started) != 1 || next.started[0].Workload != "team-1/task" || next.tied {
		t.Errorf("next is %+v, want 3 GPUs for team-1/task", next)
	}
}

// TestShareTree has two levels of departments: each is before what is below it, and the
// nodes of one parent are sorted by share.
func TestShareTree(t *testing.T) {
	object := func(name, parent string, share int64) kueue.Cohort {
		o := kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent)}}
		o.Status.FairSharing = &kueue.FairSharingStatus{WeightedShare: share}
		return o
	}
	objects := quota.NewCohorts([]kueue.Cohort{object("root", "", 0), object("d1", "root", 30), object("d2", "root", 10), object("d3", "d1", 5), object("empty", "root", 0), object("x", "y", 0), object("y", "x", 0)})
	team := func(name string, share float64) NodeShare {
		return NodeShare{Team: name, Weight: 1, Share: share, Waiting: 1}
	}
	got := shareTree(objects, map[string][]NodeShare{"root": {team("a", 20)}, "d1": {team("b", 9), team("c", 1)}, "d2": {team("d", 0)}, "d3": {team("e", 0)}, "": {team("f", 0)}})
	var lines []string
	for _, n := range got {
		lines = append(lines, fmt.Sprintf("%d %s%s %g %d", n.Level, n.Team, n.Cohort, n.Share, n.Waiting))
	}
	want := []string{"0 f 0 1", "0 cohort d2 10 1", "1 d 0 1", "0 a 20 1", "0 cohort d1 30 3", "1 c 1 1", "1 cohort d3 5 1", "2 e 0 1", "1 b 9 1"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
