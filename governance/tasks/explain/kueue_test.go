package explain

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	kueueresources "sigs.k8s.io/kueue/pkg/resources"
	kueueworkload "sigs.k8s.io/kueue/pkg/workload"
)

// empty is a client of a cluster without objects.
type empty struct{ client.Client }

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// randomTree is a tree of Cohorts with queues, some at each level, as Kueue's objects and as
// the input of an explanation.
type randomTree struct {
	random  *rand.Rand
	cohorts []*kueue.Cohort
	queues  []*kueue.ClusterQueue
	c       *Cluster
}

// newRandomTree returns a tree with up to three levels of Cohorts below the root. One in four
// Cohorts has no object, where that is possible.
func newRandomTree(seed uint64) *randomTree {
	t := &randomTree{random: rand.New(rand.NewPCG(seed, 7)), c: &Cluster{Now: now, Queues: map[string]*Queue{}, Cohorts: map[string]*Cohort{}}}
	t.grow("root", "", 1+t.random.IntN(3))
	if len(t.queues) == 0 {
		t.queue("root")
	}
	return t
}

func (t *randomTree) grow(name, parent string, levels int) {
	if parent != "" || t.random.IntN(4) > 0 {
		groups, limits := t.quotas(parent != "")
		t.cohorts = append(t.cohorts, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent), ResourceGroups: groups}})
		t.c.Cohorts[name] = &Cohort{Name: name, Parent: parent, Limits: limits}
	}
	for range t.random.IntN(3) {
		t.queue(name)
	}
	for i := range t.random.IntN(3) {
		if levels > 0 {
			t.grow(fmt.Sprintf("%s-%d", name, i), name, levels-1)
		}
	}
}

func (t *randomTree) queue(parent string) {
	groups, limits := t.quotas(true)
	name := fmt.Sprint("q", len(t.queues))
	t.queues = append(t.queues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{CohortName: kueue.CohortReference(parent), NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: groups}})
	q := &Queue{Name: name, Cohort: parent, Flavors: []string{"a100", "h100"}, Resources: []string{gpu}, Limits: limits, Usage: quota.FlavorResourceQuantities{}}
	for _, fr := range []quota.FlavorResource{a100, h100} {
		if amount := t.random.Int64N(16) - 6; amount > 0 { // also without quota, as after a change
			q.Usage[fr] = resources.Amount(amount)
		}
	}
	t.c.Queues[name], t.c.Queue = q, q
}

// quotas returns the quota of both flavors, or of one; a Cohort may also have none.
func (t *randomTree) quotas(limited bool) (groups []kueue.ResourceGroup, limits map[quota.FlavorResource]Limit) {
	limits = map[quota.FlavorResource]Limit{}
	var flavors []kueue.FlavorQuotas
	for _, fr := range []quota.FlavorResource{a100, h100} {
		if t.random.IntN(4) == 0 {
			continue
		}
		amount := func(of int64) (resources.Amount, *resource.Quantity) {
			n := t.random.Int64N(of)
			return resources.Amount(n), resource.NewQuantity(n, resource.DecimalSI)
		}
		nominal, quantity := amount(10)
		limit, r := Limit{Nominal: nominal}, kueue.ResourceQuota{Name: gpu, NominalQuota: *quantity}
		if limited && t.random.IntN(2) == 0 {
			var n resources.Amount
			n, r.BorrowingLimit = amount(6)
			limit.BorrowingLimit = &n
		}
		if limited && t.random.IntN(2) == 0 {
			var n resources.Amount
			n, r.LendingLimit = amount(12)
			limit.LendingLimit = &n
		}
		limits[fr] = limit
		flavors = append(flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(fr.Flavor), Resources: []kueue.ResourceQuota{r}})
	}
	if len(flavors) > 0 {
		groups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: flavors}}
	}
	return groups, limits
}

// kueue returns a snapshot of Kueue's cache with the tree and the usage of its queues.
func (t *randomTree) kueue(test *testing.T) *schdcache.Snapshot {
	test.Helper()
	cache := schdcache.New(empty{})
	for _, name := range []string{"a100", "h100"} {
		cache.AddOrUpdateResourceFlavor(logr.Discard(), &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	t.random.Shuffle(len(t.cohorts), func(i, j int) { t.cohorts[i], t.cohorts[j] = t.cohorts[j], t.cohorts[i] })
	for _, o := range t.cohorts {
		if err := cache.AddOrUpdateCohort(o); err != nil {
			test.Fatal(err)
		}
	}
	for _, o := range t.queues {
		if err := cache.AddClusterQueue(test.Context(), o); err != nil {
			test.Fatal(err)
		}
	}
	snapshot, err := cache.Snapshot(test.Context())
	if err != nil {
		test.Fatal(err)
	}
	for name, q := range t.c.Queues {
		used := kueueworkload.Usage{Quota: kueueresources.FlavorResourceQuantities{}}
		for fr, amount := range q.Usage {
			used.Quota[inKueue(fr)] = kueueresources.NewAmount(int64(amount))
		}
		snapshot.ClusterQueue(kueue.ClusterQueueReference(name)).AddUsage(used)
	}
	return snapshot
}

func inKueue(fr quota.FlavorResource) kueueresources.FlavorResource {
	return kueueresources.FlavorResource{Flavor: kueue.ResourceFlavorReference(fr.Flavor), Resource: corev1.ResourceName(fr.Resource)}
}

// The arithmetic of random trees is that of Kueue's cache: what each queue can use now and can
// ever have, and what each Cohort has and uses.
func TestTreesAreKueues(t *testing.T) {
	var nested, bounded int
	for seed := range uint64(5000) {
		tree := newRandomTree(seed)
		want := tree.kueue(t)
		l := newSnapshot(tree.c, demands(requesting(1), tree.c))
		if len(tree.c.Cohorts) > 1 {
			nested++
		}
		for fr, i := range l.index {
			for name, n := range l.queues {
				q := want.ClusterQueue(kueue.ClusterQueueReference(name))
				if got, wanted := max(0, n.available(i)), q.Available(inKueue(fr)).Int64(); int64(got) != wanted {
					t.Fatalf("seed %d: queue %s has %d available of %v, want %d", seed, name, got, fr, wanted)
				}
				if got, wanted := n.potentialAvailable(i), q.PotentialAvailable(inKueue(fr)).Int64(); int64(got) != wanted {
					t.Fatalf("seed %d: queue %s can have %d of %v, want %d", seed, name, got, fr, wanted)
				}
				if got, wanted := !n.has(i, 0), q.Borrowing(inKueue(fr)); got != wanted {
					t.Fatalf("seed %d: queue %s borrows %v: %t, want %t", seed, name, fr, got, wanted)
				}
				if n.parent != nil && max(0, n.available(i)) < n.localAvailable(i).Plus(n.parent.available(i)) {
					bounded++
				}
			}
			for name, n := range l.cohorts {
				node := want.Cohort(kueue.CohortReference(name)).ResourceNode
				if got, wanted := [2]int64{int64(n.subtree[i]), int64(n.usage[i])}, [2]int64{node.SubtreeQuota[inKueue(fr)].Int64(), node.Usage[inKueue(fr)].Int64()}; got != wanted {
					t.Fatalf("seed %d: cohort %s has and uses %v of %v, want %v", seed, name, got, fr, wanted)
				}
			}
		}
		cohorts := maps.Clone(want.Cohorts())
		for name := range l.cohorts {
			delete(cohorts, kueue.CohortReference(name))
		}
		if len(cohorts) > 0 {
			t.Fatalf("seed %d: Kueue has more cohorts: %v", seed, cohorts)
		}
	}
	if nested < 2000 || bounded < 1000 {
		t.Errorf("got %d nested trees and %d limits that bind, want more", nested, bounded)
	}
}
