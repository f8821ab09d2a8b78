package teams_test

import (
	"math/big"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/kueue/simulate/worker"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// A preview reports invalid values, but not missing ones.
func TestSubmitPreview(t *testing.T) {
	d := &handlerstest.Backend{}
	d.SubmitBackend.TakenName = "train"
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address)
	_, answer := sendForm(t, address, page, map[string]string{"action": "preview", "pods": "2", "accelerators": "8"})
	if answer.Find(".error").Length() != 0 || !strings.Contains(answer.Find("#manifest-hyp").Text(), "--node-count 2") {
		t.Errorf("got %s", answer.Find("#submit-form").Text())
	}
	_, answer = sendForm(t, address, page, map[string]string{"action": "preview", "name": "train"})
	if !strings.Contains(answer.Find("#name-error").Text(), "already") || answer.Find("#form-errors").Length() != 0 {
		t.Errorf("got %s", answer.Find("#submit-form").Text())
	}
	_, answer = sendForm(t, address, page, map[string]string{"action": "reset:vcpu", "vcpu": "7", "accelerators": "1"})
	if answer.Find("#vcpu").AttrOr("value", "x") != "" || answer.Find("#vcpu").AttrOr("placeholder", "") != "24" {
		t.Errorf("vCPU is %q", answer.Find("#vcpu").AttrOr("value", ""))
	}
}

func TestVerdictWords(t *testing.T) {
	short := explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "ml.p5.48xlarge", Resource: catalog.GPU}, Needed: 6, Available: 4, PotentialAvailable: 4, Nominal: 4}
	verdict := func(c explain.Constraint) queries.Hypothesis {
		return queries.Hypothesis{Verdict: explain.Verdict{Constraint: c, Shortage: &short, Detail: "main"}}
	}
	large := verdict(explain.ExceedsMax)
	large.Verdict.Fit = &explain.Fit{Flavor: "ml.p5.48xlarge", Requests: quota.Resources{catalog.GPU: 16}, Nodes: 2, Resource: catalog.GPU, Largest: 8}
	others, may := verdict(explain.Preempting), verdict(explain.Quota)
	may.Verdict.MayPreempt = true
	for name, tc := range map[string]struct {
		verdict submit.Verdict
		query   string
		has     []string
	}{
		"grows": {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 6}, query: "?elastic=true&pods=2&max=8&step=2", has: []string{"There is quota for its minimum: 2 pods", "It could grow to 6 of at most 8 pods now, once the compute has been idle for 1 m 00 s."}},
		"asks": {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 4, Asks: &submit.NodeRequest{Size: 8, Pods: 4, Nodes: 2, Own: big.NewRat(100, 1), Borrowed: big.NewRat(801, 10), Currency: "EUR"}},
			query: "?elastic=true&pods=2&max=8&step=2&growth=Provision&unscheduled=2", has: []string{"Up to 8 pods, it would ask for 2 nodes of ml.p5.48xlarge, of at most 2 pods at once. An hour of them costs 100.00 EUR within the team's quota, and 80.10 EUR borrowed."}},
		"grows fully":    {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 8}, query: "?elastic=true&pods=2&max=8&step=2&scaling=0", has: []string{"It could grow to its maximum of 8 pods now."}},
		"stays small":    {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Reach: 2}, query: "?elastic=true&pods=2&max=8&step=2", has: []string{"There is no idle compute for growth now."}},
		"never grows":    {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: verdict(explain.ExceedsMax), MaxPods: 1}, query: "?elastic=true&pods=2", has: []string{"It could never start", "That is the minimum: growth is not counted."}},
		"fewer, by room": {verdict: submit.Verdict{Outcome: submit.Preempts, Hypothesis: others, Partial: true, Pods: 3}, query: "?pods=4&least=2", has: []string{"with 3 of its 4 pods, after preemption"}},
		"may stop":       {verdict: submit.Verdict{Outcome: submit.Waits, Hypothesis: may}, has: []string{"It may have to wait: 2 GPUs short.", "It may preempt tasks of other teams that borrow more than their fair share"}},
		"waits":          {verdict: submit.Verdict{Outcome: submit.Waits, Hypothesis: verdict(explain.Quota)}, has: []string{"It would wait: 2 GPUs short.", "Own quota"}},
		"held":           {verdict: submit.Verdict{Outcome: submit.Waits, Hypothesis: verdict(explain.QueueStopped)}, has: []string{"It would wait: its LocalQueue main is on hold."}},
		"makes room":     {verdict: submit.Verdict{Outcome: submit.Preempts, Hypothesis: verdict(explain.Preempting)}, has: []string{"It would be admitted after preemption."}},
		"never":          {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: verdict(explain.ExceedsMax), MaxPods: 4}, has: []string{"It could never start: team vision can never have that much.", "At most 4 such pods fit."}},
		"not even one":   {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: verdict(explain.ExceedsMax)}, has: []string{"Even one such pod is too much."}},
		"node too small": {verdict: submit.Verdict{Outcome: submit.Never, Hypothesis: large}, query: "?accelerators=16", has: []string{"no node of ml.p5.48xlarge is that large", "One pod requests 16 GPUs, and the largest node of ml.p5.48xlarge has 8.", "2 pods with 8 GPUs each would fit.", "team vision can have at most 4 GPUs there"}},
		"fewer":          {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: verdict(explain.PendingEvaluation), Partial: true, Pods: 3}, query: "?pods=4&least=2", has: []string{"with fewer pods", "3 of its 4 pods"}},
		"queued":         {verdict: submit.Verdict{Outcome: submit.Starts, Hypothesis: queries.Hypothesis{Verdict: explain.Verdict{Constraint: explain.PendingEvaluation}, Ahead: 1}}, has: []string{"1 task is ahead of it"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Verdict = tc.verdict
			_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams/vision/submit"+tc.query)
			htmlcheck.Page(t, page)
			for _, want := range tc.has {
				if text := page.Find("#submit-verdict").Text(); !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", strings.Join(strings.Fields(text), " "), want)
				}
			}
		})
	}
}

// TestVerify asks for a simulation: its outcome replaces the instant one, with the
// tasks that it affects; a failed one leaves the instant one and says so.
func TestVerify(t *testing.T) {
	preempted := []explain.AdmittedWorkload{{Name: "sweep", Kind: "Job", Namespace: "hyperpod-ns-vision", Usage: quota.FlavorResourceQuantities{{Flavor: "p5", Resource: "nvidia.com/gpu"}: 4}}}
	for name, tc := range map[string]struct {
		trial    *queries.Trial
		headline string
		want     []string
	}{
		"preempts": {&queries.Trial{Starts: true, Preempted: preempted}, "It would be admitted after preemption.", []string{"Kueue would preempt", "sweep", "4 GPUs", "Simulated with Kueue's scheduler."}},
		"waits":    {&queries.Trial{}, "It would wait: other tasks start first.", []string{"Simulated with Kueue's scheduler."}},
		"never":    {&queries.Trial{Never: true}, "It could never start: the team can never have that much.", nil},
		"tie":      {&queries.Trial{Starts: true, Tied: true}, "It would be admitted now.", []string{"A tie between tasks of the same second decides."}},
		"hangs":    {&queries.Trial{Failed: worker.ErrTimeout}, "It would be admitted now.", []string{"This could not be verified with Kueue's scheduler: the simulation took too long."}},
		"memory":   {&queries.Trial{Failed: worker.ErrMemory}, "It would be admitted now.", []string{"the simulation needed too much memory."}},
		"crashes":  {&queries.Trial{Failed: worker.ErrCrashed}, "It would be admitted now.", []string{"the simulation failed."}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{}
			d.SubmitBackend.Trial = tc.trial
			address := handlerstest.Serve(t, d) + "/teams/vision/submit"
			_, page := handlerstest.Get(t, address)
			if !strings.Contains(page.Find("#verdict-checked[data-verify]").Text(), "Checking with Kueue's scheduler") {
				t.Error("the page does not ask for a simulation")
			}
			_, answer := sendForm(t, address, page, map[string]string{"action": "verify"})
			if got := answer.Find("#verdict strong").Text(); got != tc.headline {
				t.Errorf("headline %q, want %q", got, tc.headline)
			}
			for _, text := range tc.want {
				if got := handlerstest.Text(answer.Find("#submit-verdict")); !strings.Contains(got, text) {
					t.Errorf("the verdict lacks %q: %s", text, got)
				}
			}
			if answer.Find("[data-verify]").Length() > 0 {
				t.Error("the answer asks again")
			}
		})
	}
}
