package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestNames replaces the names in random clusters and in questions about them: the
// report is the one with the names of the original replaced, and no name is left.
func TestNames(t *testing.T) {
	started := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := randomCluster(seed)
		teams := len(c.ClusterQueues)
		secret := func(kind string) string { return fmt.Sprintf("secret-%s-%c", kind, 'a'+rune(r.IntN(26))) }
		c.Flavors[0].Spec.NodeLabels = map[string]string{"secret.example.com/pool": "secret-pool", "size": "8"}
		for i, q := range c.ClusterQueues { // names in another order than the queues
			name, namespace := fmt.Sprintf("secret-queue-%d-%s", r.IntN(90), q.Name), c.LocalQueues[i].Namespace
			for _, w := range c.Workloads {
				if w.Status.Admission != nil && string(w.Status.Admission.ClusterQueue) == q.Name {
					w.Status.Admission.ClusterQueue = kueue.ClusterQueueReference(name)
				}
				if w.Namespace == namespace {
					w.Namespace = "secret-" + namespace
				}
			}
			c.Namespaces[i].Name, c.LocalQueues[i].Namespace = "secret-"+namespace, "secret-"+namespace
			c.Namespaces[i].Labels = map[string]string{"secret.example.com/team": secret("team")}
			q.UID, q.Name, c.LocalQueues[i].Spec.ClusterQueue = types.UID(fmt.Sprint("uid-", i)), name, kueue.ClusterQueueReference(name)
			if r.IntN(2) == 0 {
				q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "secret.example.com/team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{secret("team")}}}}
			}
		}
		for i, w := range c.Workloads {
			w.UID = types.UID(fmt.Sprintf("uid-%d-%d", r.IntN(1000), i))
			w.Name = fmt.Sprintf("secret-%d-%s", r.IntN(90), w.Name)
			spec := &w.Spec.PodSets[0].Template.Spec
			switch i % 4 {
			case 0:
				spec.NodeSelector = map[string]string{"secret.example.com/pool": []string{"secret-pool", "secret-other"}[r.IntN(2)]}
			case 1:
				spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{fmt.Sprint(6 + r.IntN(4))}}}}}}}}
			case 2:
				spec.Containers[0].Name, spec.Containers[0].Image, spec.Containers[0].Env = "secret", "secret/image", []corev1.EnvVar{{Name: "SECRET", Value: "secret"}}
			}
			w.Annotations = map[string]string{"kueue.x-k8s.io/priority-boost": fmt.Sprint(r.IntN(20))}
		}
		c.Configuration.FeatureGates = map[string]bool{"PriorityBoost": true}
		target := c.Workloads[r.IntN(len(c.Workloads))]
		raised := target.DeepCopy()
		raised.Spec.Priority = ptr.To[int32](100)
		q := &simulate.Question{Target: simulate.WorkloadKey(target), Ties: 2, Horizon: 5 * time.Second, Change: simulate.Change{Workloads: []*kueue.Workload{raised}}}
		if teams > 2 {
			q.Change.Removed.Workloads = []types.NamespacedName{{Namespace: c.Workloads[0].Namespace, Name: c.Workloads[0].Name}}
		}
		names := simulate.NewNames([]byte("salt"), c.Snapshot, q)
		hashed, asked := names.Snapshot(c.Snapshot), names.Question(q)
		text, err := json.Marshal(struct {
			S *simulate.Snapshot
			Q *simulate.Question
		}{hashed, asked})
		if err != nil {
			t.Fatal(err)
		}
		for _, leak := range []string{"secret", "team-", "p5"} {
			if at := strings.Index(string(text), leak); at >= 0 {
				t.Fatalf("seed %d: the snapshot still has %q: %s", seed, leak, text[max(0, at-60):min(len(text), at+60)])
			}
		}
		answer := func(s *simulate.Snapshot, q *simulate.Question) *simulate.Report {
			report, err := new(engine.Engine).Answer(t.Context(), s, q)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return report
		}
		var pairs []string // old and new names in reports
		pair := func(from, to string) { pairs = append(pairs, fmt.Sprintf("%q", from), fmt.Sprintf("%q", to)) }
		for i, f := range c.Flavors {
			pair(f.Name, hashed.Flavors[i].Name)
		}
		for i, q := range c.ClusterQueues {
			pair(q.Name, hashed.ClusterQueues[i].Name)
		}
		for i, w := range c.Workloads {
			pair(simulate.WorkloadKey(w), simulate.WorkloadKey(hashed.Workloads[i]))
		}
		renamed := func(r *simulate.Report, pairs ...string) (to simulate.Report) {
			text, err := json.Marshal(r)
			if err == nil {
				err = json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(text))), &to)
			}
			if err != nil {
				t.Fatal(err)
			}
			return to
		}
		want := renamed(answer(c.Snapshot, q), pairs...)
		if diff := cmp.Diff(want, renamed(answer(hashed, asked))); diff != "" {
			t.Fatalf("seed %d: reports of the cluster (-) and of the one with other names (+) differ:\n%s", seed, diff)
		}
		started += len(want.Started)
	}
	if started < 80 {
		t.Errorf("%d starts: too few to compare", started)
	}
}
