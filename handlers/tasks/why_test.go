package tasks_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate/worker"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	taskpages "kuota.dev/kuota/handlers/tasks"
)

// A reason that Kuota does not know is shown, and so is that it does not know it.
func TestKueuesOwnReason(t *testing.T) {
	for agreement, want := range map[explain.Agreement]string{
		explain.Agrees: "", explain.Disagrees: "can be older than this verdict", explain.UnknownReason: "does not know that reason, so this verdict may be wrong",
	} {
		task := &tasks.Task{State: tasks.Pending, Reason: "SomethingNew"}
		d := queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task, Message: "new."}, Verdict: &explain.Verdict{Constraint: explain.PendingEvaluation}, Agreement: agreement}
		got := taskpages.WhyOf(d).Differs
		if (want == "") != (got == "") || !strings.Contains(got, want) || want != "" && !strings.Contains(got, "SomethingNew: “new”") {
			t.Errorf("%s: %q, want %q", agreement, got, want)
		}
	}
}

// What Kuota does not calculate, Kueue explains.
func TestKueueExplainsWhatIsNotCalculated(t *testing.T) {
	task := &tasks.Task{State: tasks.Pending, Reason: "WaitingForQuota"}
	d := queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task, Message: "2 more needed."}, Verdict: &explain.Verdict{Constraint: explain.Unknown, Detail: "WaitingForQuota"}}
	if got := taskpages.WhyOf(d).Text; !strings.HasSuffix(got, " Kueue says WaitingForQuota: “2 more needed”.") {
		t.Errorf("got %q", got)
	}
}

// The border of a department that stops a task is named, or else the lending limits that do.
func TestBorderIsNamed(t *testing.T) {
	task := &tasks.Task{State: tasks.Pending}
	border := &explain.Border{Cohort: "department research", Left: 1, Needed: 4}
	withheld := []explain.Withheld{{Queue: "q", Team: "vision", Amount: 3}, {Queue: "r", Amount: 2}, {Cohort: "cohort d2", Amount: 2}, {Team: "another team", Amount: 1}}
	for name, tc := range map[string]struct {
		constraint explain.Constraint
		shortage   explain.Shortage
		want       string
	}{
		"now":            {explain.Quota, explain.Shortage{Border: border}, " Department research may borrow 1 GPU more from others, and this task needs 4 GPUs."},
		"ever":           {explain.ExceedsMax, explain.Shortage{Border: border}, " Department research may borrow at most 1 GPU from others, and this task needs 4 GPUs."},
		"lending limits": {explain.Quota, explain.Shortage{Withheld: withheld}, " Lending limits keep idle quota from it: 3 GPUs of team vision, 2 GPUs of queue r, 2 GPUs of cohort d2, 1 GPU of other teams."},
		"neither":        {explain.Quota, explain.Shortage{}, "There is no idle quota to borrow."},
	} {
		tc.shortage.FlavorResource = quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}
		why := taskpages.WhyOf(queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task}, Verdict: &explain.Verdict{Constraint: tc.constraint, Shortage: &tc.shortage}})
		if got := why.Steps[len(why.Steps)-1].Text; !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// A LocalQueue that is on hold by itself is named, and is not read as the team's hold.
func TestHeldLocalQueue(t *testing.T) {
	task := &tasks.Task{State: tasks.Pending}
	for name, words := range map[string][2]string{
		"":       {"Its queue is on hold.", "An admin put the team's queue on hold."},
		"second": {"Its LocalQueue second is on hold.", "The stopPolicy of LocalQueue second is set"},
	} {
		why := taskpages.WhyOf(queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task}, Verdict: &explain.Verdict{Constraint: explain.QueueStopped, Detail: name}})
		if why.Headline != words[0] || !strings.HasPrefix(why.Text, words[1]) {
			t.Errorf("%q: got %+v, want %q", name, why, words)
		}
	}
}

// A PreemptionConfig may preempt tasks that no explanation names.
func TestPreemptionRulesAreShown(t *testing.T) {
	task := &tasks.Task{State: tasks.Pending}
	for _, rules := range []bool{false, true} {
		verdict := explain.Verdict{Constraint: explain.Quota, RulesMayPreempt: rules, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}, Needed: 2}}
		text := taskpages.WhyOf(queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task}, Verdict: &verdict}).Text
		if strings.Contains(text, "A PreemptionConfig of its queue") != rules {
			t.Errorf("rules %t: %q", rules, text)
		}
	}
}

// TestChecked renders whether the changes were simulated. A simulation that failed
// leaves the instant changes, unverified.
func TestChecked(t *testing.T) {
	gpus := quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}
	instant := []explain.Change{{Kind: explain.RaiseNominalQuota, Quotas: []explain.QuotaChange{{FlavorResource: gpus, From: 4, To: 8}}}}
	ofShare := []explain.Change{{Kind: explain.RaiseNominalQuota, Share: "nightly", Quotas: instant[0].Quotas}}
	preempted := explain.AdmittedWorkload{Name: "sweep", Kind: "Job", Namespace: "vision", Usage: quota.FlavorResourceQuantities{gpus: 2}}
	verified := []explain.Change{{Kind: explain.RaiseNominalQuota, Quotas: []explain.QuotaChange{{FlavorResource: gpus, From: 4, To: 6}}, Verified: true, Minimal: true,
		Preempted: []explain.AdmittedWorkload{preempted}, Borrowed: quota.FlavorResourceQuantities{gpus: 1}}}
	for name, tc := range map[string]struct {
		advice  *queries.Advice
		changes []explain.Change
		state   string
		text    string // part of it
		title   string // of the change
		effects string
	}{
		"none":      {nil, instant, "", "", "Raising the quota to 8 GPUs", ""},
		"a share":   {nil, ofShare, "", "", "Raising the quota of share nightly to 8 GPUs", ""},
		"computing": {&queries.Advice{Computing: true}, instant, "computing", "Checking", "Raising the quota to 8 GPUs", ""},
		"verified":  {&queries.Advice{}, verified, "verified", "Verified with Kueue's scheduler.", "Raising the quota to 6 GPUs", "preempted borrowed"},
		"nothing":   {&queries.Advice{}, nil, "verified", "No single change", "", ""},
		"starts":    {&queries.Advice{Starts: true, Preempts: []explain.AdmittedWorkload{preempted}}, instant, "starts", "once Kueue has preempted", "Raising the quota to 8 GPUs", ""},
		"hangs":     {&queries.Advice{Failed: worker.ErrTimeout}, instant, "failed", "could not be verified with Kueue's scheduler: the simulation took too long.", "Raising the quota to 8 GPUs", ""},
		"memory":    {&queries.Advice{Failed: worker.ErrMemory}, instant, "failed", "needed too much memory.", "Raising the quota to 8 GPUs", ""},
		"crashes":   {&queries.Advice{Failed: worker.ErrCrashed}, instant, "failed", "the simulation failed.", "Raising the quota to 8 GPUs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			task := &tasks.Task{State: tasks.Pending}
			verdict := explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: gpus, Needed: 8}, Changes: tc.changes}
			why := taskpages.WhyOf(queries.Detail{Item: queries.Item{Task: task, Team: "vision"}, About: queries.Item{Task: task}, Verdict: &verdict, Advice: tc.advice})
			if c := why.Checked; c.State != tc.state || !strings.Contains(c.Text, tc.text) {
				t.Errorf("checked %+v, want %s with %q", c, tc.state, tc.text)
			}
			if tc.title == "" {
				return
			}
			change := why.Changes[0]
			var effects []string
			for _, e := range change.Effects {
				effects = append(effects, e.Kind)
			}
			if change.Title != tc.title || change.Verified != (name == "verified") || strings.Join(effects, " ") != tc.effects {
				t.Errorf("change %+v, want %q with %q", change, tc.title, tc.effects)
			}
		})
	}
}

// TestPodsWaitForOthersToEnd names the tasks that a reader may see, and no number of the
// others.
func TestPodsWaitForOthersToEnd(t *testing.T) {
	of := func(names ...string) (list []explain.TerminatingPod) {
		for _, name := range names {
			p := explain.TerminatingPod{Namespace: "ns", Name: name, UID: "u-" + name}
			if name == "" {
				p = explain.TerminatingPod{}
			}
			list = append(list, p)
		}
		return list
	}
	task := &tasks.Task{Namespace: "ns", Name: "waits", UID: "u-waits", State: tasks.Running}
	for name, tc := range map[string]struct {
		pods []explain.TerminatingPod
		want string
	}{
		"one task":     {of("train", "train"), "until pods of train have ended (at most 42 s)."},
		"hidden tasks": {of("", "", ""), "until pods of another task have ended"},
		"some hidden":  {of("train", "", "eval"), "until pods of train, another task and eval have ended"},
		"many":         {of("a", "b", "c", "d"), "until pods of a, b and other tasks have ended"},
		"its own":      {of("waits"), "until pods of its last run have ended"},
	} {
		verdict := explain.Verdict{Constraint: explain.PodsTerminating, Terminating: tc.pods, Unscheduled: 3, EndWithin: 42 * time.Second, Fit: &explain.Fit{}}
		text := taskpages.WhyOf(queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task}, Verdict: &verdict}).Text
		if !strings.HasPrefix(text, "Admitted: quota is reserved. 3 pods wait for nodes ") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %q, want %q", name, text, tc.want)
		}
	}
}

// The advice about a queue that does not exist, and about a team that may not borrow, is what
// the API server accepts.
func TestAdviceIsAccepted(t *testing.T) {
	task := queries.Item{Task: &tasks.Task{Namespace: "ns", Name: "waits"}, Team: "vision"}
	why := taskpages.WhyOf(queries.Detail{Item: task, About: task, Verdict: &explain.Verdict{Constraint: explain.NoQueue, Detail: "mian", LocalQueues: []string{"main", "main-a"}}})
	if want := "There is no LocalQueue mian in its namespace, and the queue of a submitted task cannot be changed. Delete it, and submit it again with the label kueue.x-k8s.io/queue-name: main or main-a."; why.Text != want {
		t.Errorf("got %q, want %q", why.Text, want)
	}
	fr := quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}
	why = taskpages.WhyOf(queries.Detail{Item: task, About: task, Verdict: &explain.Verdict{
		Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: fr, Needed: 6, Available: 4},
		Changes: []explain.Change{{Kind: explain.RaiseBorrowingLimit, LendAndBorrow: true, Verified: true, Minimal: true, Quotas: []explain.QuotaChange{{FlavorResource: fr, To: 2}}}},
	}})
	if want := "of p5 for team vision and changing its strategy to Lend and borrow starts it."; why.Changes[0].Text != want {
		t.Errorf("got %q, want %q", why.Changes[0].Text, want)
	}
}
