package queries

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/textdiff"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestPreviewHidesNames fills every string of a report with names of another team,
// also of fields that are added later, and looks for them in what a member sees.
func TestPreviewHidesNames(t *testing.T) {
	var report simulate.Report
	named := fill(reflect.ValueOf(&report).Elem(), "secret-ns/secret-task")
	if named < 10 {
		t.Fatalf("filled %d strings", named)
	}
	c := Simulated{
		Snapshot: &simulate.Snapshot{}, Report: &report, Subject: "vision",
		Queues:  map[string]QueueOwner{"secret-ns/secret-task": {Team: "secret", Namespace: "secret-ns"}},
		Objects: []ObjectDiff{{Kind: "ClusterQueue", Name: "secret-queue", Queue: "secret-ns/secret-task", Lines: []textdiff.Line{{Text: "secret"}}}},
	}
	x, _ := newTestService()
	other := taskstest.Workload("secret-ns", "secret-task", "", 9, taskstest.Start)
	x.SetWorkload(other, false)
	c.Snapshot.Workloads = append(c.Snapshot.Workloads, other)
	for viewing, v := range map[string]viewer{
		"member": {index: x, scope: access.ScopeOf("mine"), teams: taskstest.Teams("mine", "vision")},
		"admin":  {index: x, scope: access.Scope{All: true}, teams: taskstest.Teams("secret-ns", "secret", "mine", "vision")},
	} {
		text, err := json.Marshal(v.preview(c))
		if err != nil {
			t.Fatal(err)
		}
		if shows, want := strings.Contains(string(text), "secret"), viewing == "admin"; shows != want {
			t.Errorf("%s sees names of another team: %v, want %v: %s", viewing, shows, want, text)
		}
	}
}

// fill sets all strings of a value, and returns how many it set. Slices and maps get
// one element.
func fill(value reflect.Value, text string) (n int) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(text)
		return 1
	case reflect.Int64:
		value.SetInt(1)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return fill(value.Elem(), text)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		return fill(value.Index(0), text)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		if value.Type() == reflect.TypeFor[quota.FlavorResourceQuantities]() { // pools are for all
			value.Set(reflect.ValueOf(quota.FlavorResourceQuantities{{Flavor: "p5", Resource: "nvidia.com/gpu"}: 1}))
			return 0
		}
		n = fill(key, text) + fill(element, text)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
		return n
	case reflect.Struct:
		for i := range value.NumField() {
			n += fill(value.Field(i), text)
		}
	}
	return n
}

// TestPreviewEffects has more tasks than a list shows, of which the viewer sees most,
// and figures of three teams.
func TestPreviewEffects(t *testing.T) {
	x, _ := newTestService()
	gpu := quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}
	gpus := func(n resources.Amount) quota.FlavorResourceQuantities { return quota.FlavorResourceQuantities{gpu: n} }
	report := &simulate.Report{Settled: true, Queues: map[string]simulate.QueueChange{
		"q-mine":  {Before: simulate.Queue{Usage: gpus(4)}, After: simulate.Queue{Usage: gpus(6)}},
		"q-other": {Before: simulate.Queue{Usage: gpus(3)}, After: simulate.Queue{Usage: gpus(1)}},
		"q-third": {Before: simulate.Queue{Usage: gpus(2)}, After: simulate.Queue{Usage: gpus(1)}},
		"q-same":  {Before: simulate.Queue{Usage: gpus(9)}, After: simulate.Queue{Usage: gpus(9)}},
	}}
	for i := range resources.Amount(maxListed + 2) {
		report.Started = append(report.Started, simulate.Effect{Workload: fmt.Sprintf("mine/w-%02d", i), Usage: gpus(i + 1)})
	}
	report.Started = append(report.Started, simulate.Effect{Workload: "other/a", Usage: gpus(5)}, simulate.Effect{Workload: "other/b", Usage: gpus(7)})
	report.Preempted = []simulate.Effect{{Workload: "mine/p", Usage: gpus(2), By: "other/a", Reason: kueue.InCohortReclamationReason, Tied: true}}
	c := Simulated{Report: report, Subject: "vision", Snapshot: &simulate.Snapshot{Time: time.Unix(0, 0)}, Queues: map[string]QueueOwner{
		"q-mine": {"vision", "mine"}, "q-other": {"speech", "other"}, "q-third": {"maps", "third"}, "q-same": {"same", "same"},
	}}
	for queue, n := range map[string]resources.Amount{"q-mine": 4, "q-other": 2, "q-third": 0, "q-same": 9} {
		c.Snapshot.ClusterQueues = append(c.Snapshot.ClusterQueues, queueWith(queue, n))
	}
	c.Change.ClusterQueues = []*kueue.ClusterQueue{queueWith("q-mine", 6)}

	p := viewer{index: x, scope: access.ScopeOf("mine"), teams: taskstest.Teams("mine", "vision")}.preview(c)
	if n := len(p.Started.Listed); n != maxListed || p.Started.Listed[0].Workload != fmt.Sprintf("w-%02d", maxListed+1) {
		t.Errorf("%d tasks are listed, %+v first", n, p.Started.Listed[0])
	}
	if diff := cmp.Diff(Effects{More: 2, Rest: gpus(3), Others: gpus(12)}, Effects{More: p.Started.More, Rest: p.Started.Rest, Others: p.Started.Others}); diff != "" {
		t.Errorf("the rest differs (-want +got):\n%s", diff)
	}
	if got := p.Preempted.Listed[0]; got.By != anotherTeam || !got.Tied || got.Team != "vision" {
		t.Errorf("preempted %+v", got)
	}
	want := []TeamEffect{
		{Team: "vision", Figures: []TeamFigure{{FlavorResource: gpu, Allocated: BeforeAfter{4, 6}, Used: BeforeAfter{4, 6}}}},
		{Figures: []TeamFigure{{FlavorResource: gpu, Allocated: BeforeAfter{11, 11}, Used: BeforeAfter{14, 11}, Borrowed: BeforeAfter{3, 1}}}},
	}
	if diff := cmp.Diff(want, p.Teams); diff != "" {
		t.Errorf("teams differ (-want +got):\n%s", diff)
	}
	all := viewer{index: x, scope: access.Scope{All: true}}.preview(c)
	var names []string
	for _, team := range all.Teams {
		names = append(names, team.Team)
	}
	if diff := cmp.Diff([]string{"vision", "maps", "speech"}, names); diff != "" || all.Started.Others != nil {
		t.Errorf("an admin sees other teams (-want +got):\n%s", diff)
	}
}

func queueWith(name string, gpus resources.Amount) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{Flavors: []kueue.FlavorQuotas{{
		Name: "p5", Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}}}}}}}}
}
