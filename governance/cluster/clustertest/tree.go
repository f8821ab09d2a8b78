package clustertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// GPUs returns the nominal quota of GPUs in a flavor.
func GPUs(groups []kueue.ResourceGroup, flavor string) (gpus int64) {
	for _, group := range groups {
		for _, f := range group.Flavors {
			for _, r := range f.Resources {
				if string(f.Name) == flavor && r.Name == "nvidia.com/gpu" {
					gpus += int64(resources.AmountFromQuantity("nvidia.com/gpu", r.NominalQuota))
				}
			}
		}
	}
	return gpus
}

// node is a Cohort or a ClusterQueue at one resourceVersion.
type node struct {
	version      int64
	name, parent string // ClusterQueues have a space before their name
	gpus         int64
	deleted      bool
}

// WatchTree watches all Cohorts and ClusterQueues. stop fails the test if, in the order of
// resourceVersions, what is in and below a Cohort ever had more GPUs of a flavor than most says.
func WatchTree(t *testing.T, c *Cluster, flavor string, most map[string]int64) (stop func()) {
	t.Helper()
	watcher, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var changes []node
	events := make(chan node)
	lists := []client.ObjectList{&kueue.ClusterQueueList{}, &kueue.CohortList{}}
	for _, list := range lists {
		w, err := watcher.Watch(ctx, list)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for event := range w.ResultChan() {
				n := nodeOf(event.Object, flavor)
				n.deleted = event.Type == "DELETED"
				events <- n
			}
			events <- node{version: -1}
		}()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for open := len(lists); open > 0; {
			switch n := <-events; {
			case n.version > 0:
				changes = append(changes, n)
			case n.version < 0:
				open--
			}
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-done
		slices.SortFunc(changes, func(a, b node) int { return int(a.version - b.version) })
		is := map[string]node{}
		for _, change := range changes {
			if is[change.name] = change; change.deleted {
				delete(is, change.name)
			}
			for cohort, limit := range most {
				if got := sumOf(is, cohort); got > limit {
					t.Errorf("after %s at %d: Cohort %s has %d GPUs of %d", change.name, change.version, cohort, got, limit)
				}
			}
		}
		if len(changes) < 8 {
			t.Errorf("got %d changes, want at least 8", len(changes))
		}
	}
}

// sumOf returns the GPUs in and below a Cohort.
func sumOf(is map[string]node, cohort string) int64 {
	total := is[cohort].gpus
	for name, n := range is {
		switch {
		case n.parent != cohort:
		case name[0] == ' ':
			total += n.gpus
		default:
			total += sumOf(is, name)
		}
	}
	return total
}

func nodeOf(object runtime.Object, flavor string) (n node) {
	version := ""
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		version, n = o.ResourceVersion, node{name: " " + o.Name, parent: string(o.Spec.CohortName), gpus: GPUs(o.Spec.ResourceGroups, flavor)}
	case *kueue.Cohort:
		version, n = o.ResourceVersion, node{name: o.Name, parent: string(o.Spec.ParentName), gpus: GPUs(o.Spec.ResourceGroups, flavor)}
	}
	_, _ = fmt.Sscan(version, &n.version) // 0 is left out
	return n
}
