package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestFigures measures figures of docs/figures.md. make bench runs it.
func TestFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	consoles.Figures(t, "typing_to_defaults", typing(t))
	consoles.Figures(t, "save_to_active", saves(t))
	consoles.Figures(t, "manual_change_to_corrected", manualChanges(t))
}

// typing measures in the browser the time from a key's input event until the new
// default is painted.
func typing(t *testing.T) []time.Duration {
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/new")
	row := poolRow(t, page, "ml.p5.48xlarge")
	must(t, page.Locator("#"+row+"-accelerators").Fill("1"))
	placeholder(t, page, row+"-vcpu", "24")
	_, err := page.Evaluate(`row => {
		window.measured = [];
		let typed = 0;
		document.addEventListener("input", () => { typed = performance.now(); }, true);
		new MutationObserver(() => {
			const began = typed;
			requestAnimationFrame(() => setTimeout(() => window.measured.push(performance.now() - began)));
		}).observe(document.querySelector("#" + row + "-vcpu"), {attributes: true, attributeFilter: ["placeholder"]});
	}`, row)
	must(t, err)
	shown := "24"
	for i := range 60 {
		must(t, page.Locator("#"+row+"-accelerators").Press("Backspace"))
		must(t, expect.Locator(page.Locator("#"+row+"-vcpu")).Not().ToHaveAttribute("placeholder", shown))
		shown = fmt.Sprint(24 * (i%9 + 1))
		must(t, page.Locator("#"+row+"-accelerators").PressSequentially(fmt.Sprint(i%9+1)))
		placeholder(t, page, row+"-vcpu", shown)
	}
	times, err := page.Evaluate(`() => window.measured.map(ms => Math.round(ms * 1000))`)
	must(t, err)
	var samples []time.Duration
	for _, micros := range times.([]any) {
		samples = append(samples, time.Duration(toInt(micros))*time.Microsecond)
	}
	return samples
}

func toInt(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return -1
}

// saves measures the time from submitting the form until a watch reports that the
// ClusterQueue is active.
func saves(t *testing.T) []time.Duration {
	c := clustertest.Get(t)
	watcher, err := client.NewWithWatch(c.Config, client.Options{Scheme: cluster.Scheme})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var samples []time.Duration
	for range 30 {
		team := clustertest.Name("fast")
		deleteTeamAtEnd(t, team)
		name := "hyperpod-ns-" + team + "-clusterqueue"
		events, err := watcher.Watch(ctx, &kueue.ClusterQueueList{}, client.MatchingFields{"metadata.name": name})
		must(t, err)
		began := time.Now()
		if status, _ := post(t, filledForm(team)); status != http.StatusSeeOther {
			t.Fatalf("save: got status %d, want 303", status)
		}
		for event := range events.ResultChan() {
			queue, ok := event.Object.(*kueue.ClusterQueue)
			if ok && meta.IsStatusConditionTrue(queue.Status.Conditions, kueue.ClusterQueueActive) {
				samples = append(samples, time.Since(began))
				break
			}
		}
		events.Stop()
	}
	return samples
}

// manualChanges measures the time from an edit of a ClusterQueue by hand until the
// controller has corrected it.
func manualChanges(t *testing.T) []time.Duration {
	c := clustertest.Get(t)
	team := clustertest.Name("edited")
	deleteTeamAtEnd(t, team)
	one := int64(1)
	must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: team},
		Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &one}}}},
	}))
	waitForQueues(t, c, team)
	var samples []time.Duration
	for range 30 {
		var queue kueue.ClusterQueue
		key := client.ObjectKey{Name: "hyperpod-ns-" + team + "-clusterqueue"}
		must(t, c.Client.Get(t.Context(), key, &queue))
		before := queue.DeepCopy()
		hold := kueue.Hold
		queue.Spec.StopPolicy = &hold
		began := time.Now()
		must(t, c.Client.Patch(t.Context(), &queue, client.MergeFrom(before)))
		clustertest.Eventually(t, 5*time.Second, func(ctx context.Context) error {
			if err := c.Client.Get(ctx, key, &queue); err != nil {
				return err
			}
			if *queue.Spec.StopPolicy != kueue.None {
				return fmt.Errorf("stop policy: got %s, want None", *queue.Spec.StopPolicy)
			}
			return nil
		})
		samples = append(samples, time.Since(began))
	}
	return samples
}
