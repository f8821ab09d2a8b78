package tasks_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func working(state tasks.State) actions.Review {
	task := &tasks.Task{
		Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", Queue: "main", PriorityClass: "dev-priority", Priority: 10, State: state,
		Usage: quota.Resources{"nvidia.com/gpu": 3}, Requests: quota.Resources{"nvidia.com/gpu": 3}, AdmittedAt: time.Now().Add(-125 * time.Minute),
	}
	first := &tasks.Task{Name: "first", UID: "u2", Requests: quota.Resources{"nvidia.com/gpu": 2}}
	high := actions.Choice{Name: "prod-priority", Supposed: index.Supposed{Priority: 90, Position: 1, QueueLength: 3, Preempts: true}}
	low := actions.Choice{Name: "dev-priority", Supposed: index.Supposed{Priority: 10, Position: 3, QueueLength: 3, Ahead: first, Outranked: 2, Preempts: true}}
	r := actions.Review{Detail: queries.Detail{Item: queries.Item{Task: task, Team: "vision"}}, Head: first, Current: low.Supposed, Choices: []actions.Choice{high, low}}
	if !state.UsesQuota() {
		short := explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}, Needed: 3, Available: 2, Nominal: 4, Used: 4}
		reclaims := short
		runs := func(name string, amount resources.Amount) explain.AdmittedWorkload {
			return explain.AdmittedWorkload{Name: name, Kind: "Job", Namespace: "ns", UID: name, Usage: quota.FlavorResourceQuantities{short.FlavorResource: amount}}
		}
		reclaims.LowerPriority, reclaims.LowerPriorityUsage = []explain.AdmittedWorkload{runs("runs", 4), runs("spared", 2)}, 6
		r.Position, r.QueueLength = 3, 3
		r.Choices[0].Verdict = &explain.Verdict{Constraint: explain.Preempting, Shortage: &reclaims}
		r.Choices[1].Verdict = &explain.Verdict{Constraint: explain.Quota, Shortage: &short}
		r.Current.Verdict = r.Choices[1].Verdict
	}
	return r
}

// Each page shows the effects in numbers, and its form runs the action on the
// reviewed UID.
func TestActionsOnATask(t *testing.T) {
	front := working(tasks.Pending)
	front.Choices = front.Choices[:1]
	preempts := working(tasks.Stopped)
	preempts.Current.Verdict = preempts.Choices[0].Verdict
	service := working(tasks.Running)
	service.Kind, service.Replicas = "Deployment", 3
	for name, tc := range map[string]struct {
		action     string
		review     actions.Review
		FormValues map[string]string
		refusal    error
		says       []string
		status     int
		done       string // or the text of the page
		location   string
	}{
		"stop what runs": {action: "stop", review: working(tasks.Running), status: 303, done: "stop train u1", location: "/tasks/ns/job/train?done=stop",
			says: []string{"loses its 3 GPUs at once", "its job is suspended", "It has run for 2 h 05 m", "stays stopped until someone resumes it", "first is first in its queue now, and requests 2 GPUs"}},
		"stop what waits":           {action: "stop", review: working(tasks.Pending), status: 303, done: "stop train u1", location: "/tasks/ns/job/train?done=stop", says: []string{"leaves its queue, where it is 3rd of 3, behind first", "uses no quota"}},
		"resume":                    {action: "resume", review: working(tasks.Stopped), status: 303, done: "resume train u1", location: "/tasks/ns/job/train?done=resume", says: []string{"joins its queue as 3rd of 3, behind first", "1 GPU short in p5"}},
		"resume by preemption":      {action: "resume", review: preempts, status: 303, done: "resume train u1", location: "/tasks/ns/job/train?done=resume", says: []string{"It may preempt other tasks, which are requeued."}},
		"to the front":              {action: "front", review: front, status: 303, done: "front by prod-priority train u1", location: "/tasks/ns/job/train?done=front", says: []string{"class prod (weight 90)", "has the priority class dev (weight 10) now", "from the 3rd place in its queue to the 1st of 3", "It may preempt other tasks, which are requeued."}},
		"to the front, too late":    {action: "front", review: front, FormValues: map[string]string{"choice": "gone"}, status: 409, done: "The queue or the classes changed meanwhile"},
		"class of what waits":       {action: "class", review: working(tasks.Pending), FormValues: map[string]string{"choice": "prod-priority"}, status: 303, done: "prod-priority train u1", location: "/tasks/ns/job/train?done=class", says: []string{"prod · weight 90", "1st of 3. It may preempt", "dev · weight 10 · current", "3rd of 3, behind first"}},
		"class of what runs":        {action: "class", review: working(tasks.Running), FormValues: map[string]string{"choice": "prod-priority"}, status: 303, done: "prod-priority train u1", location: "/tasks/ns/job/train?done=class", says: []string{"keeps running", "2 waiting tasks of its queue would have higher priority, and may preempt it"}},
		"a class that there is not": {action: "class", review: working(tasks.Running), FormValues: map[string]string{"choice": "x"}, status: 422, done: "Choose an existing class."},
		"scale":                     {action: "scale", review: service, FormValues: map[string]string{"replicas": "5"}, status: 303, done: "scale from 3 to 5 train u1", location: "/tasks/ns/job/train?done=scale", says: []string{"It has 3 replicas", "each additional replica waits in its queue for quota"}},
		"scale to 0":                {action: "scale", review: service, FormValues: map[string]string{"replicas": "0"}, status: 422, done: "Must be at least 1; to scale it to 0, stop it."},
		"scale to a word":           {action: "scale", review: service, FormValues: map[string]string{"replicas": "five"}, status: 422, done: "give a whole number from 1 to 1,000"},
		"scaled meanwhile":          {action: "scale", review: service, FormValues: map[string]string{"replicas": "5"}, refusal: &governance.Error{Kind: governance.Conflict, Message: "train was scaled to 4 meanwhile."}, status: 409, done: "train was scaled to 4 meanwhile."},
		"delete":                    {action: "delete", review: working(tasks.Running), FormValues: map[string]string{"confirm": "train"}, status: 303, done: "delete train u1", location: "/tasks?deleted=task", says: []string{"The Job train is deleted, with its pods", "loses its 3 GPUs", "Type train to confirm"}},
		"delete, half typed":        {action: "delete", review: working(tasks.Running), FormValues: map[string]string{"confirm": "trai"}, status: 422, done: "Type train exactly."},
		"refused by Kueue":          {action: "class", review: working(tasks.Running), FormValues: map[string]string{"choice": "prod-priority"}, refusal: &governance.Error{Kind: governance.Invalid, Message: "It was refused: no."}, status: 422, done: "It was refused: no."},
		"ended in between":          {action: "stop", review: working(tasks.Running), refusal: &governance.Error{Kind: governance.Conflict, Message: "train has ended in between."}, status: 409, done: "train has ended in between."},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{ActionsBackend: handlerstest.ActionsBackend{ReviewResult: tc.review}}
			address := handlerstest.Serve(t, d) + "/tasks/ns/job/train/" + tc.action
			_, page := handlerstest.Get(t, address)
			htmlcheck.Page(t, page)
			text := handlerstest.Text(page.Find("main"))
			for _, want := range tc.says {
				if !strings.Contains(text, want) {
					t.Errorf("the page lacks %q: %s", want, text)
				}
			}
			values := handlerstest.ValuesIn(page, "#action-form")
			for field, value := range tc.FormValues {
				values.Set(field, value)
			}
			d.ActionsBackend.Refusal = tc.refusal
			response, page := handlerstest.Post(t, address, values)
			if response.StatusCode != tc.status || response.Header.Get("Location") != tc.location {
				t.Fatalf("answers %s to %q", response.Status, response.Header.Get("Location"))
			}
			if done := strings.Join(d.ActionsBackend.Done, " ") + handlerstest.Text(page.Find("main")); !strings.Contains(done, tc.done) {
				t.Errorf("did %q, want %q", done, tc.done)
			}
			if d.ActionsBackend.At.UID != "u1" {
				t.Errorf("the form is about %+v", d.ActionsBackend.At)
			}
		})
	}
}

func TestActionThatIsNotPossible(t *testing.T) {
	r := working(tasks.Running)
	r.Obstacle = "It got its quota without a priority class. Stop it, change its class, resume it."
	_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{ActionsBackend: handlerstest.ActionsBackend{ReviewResult: r}})+"/tasks/ns/job/train/class?uid=u1")
	htmlcheck.Page(t, page)
	if page.Find("form#action-form").Length() > 0 || page.Find(`a[href="/tasks/ns/job/train/stop?uid=u1"]`).Length() != 1 {
		t.Errorf("the page has a form, or leads nowhere: %s", handlerstest.Text(page.Find("main")))
	}
	response, _ := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{})+"/tasks/ns/job/train/stop")
	if response.StatusCode != 404 {
		t.Errorf("a task that is not there answers %s", response.Status)
	}
}

// The page of a task offers the permitted actions, and lists missing permissions.
func TestTaskPageOffersActions(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{{Task: working(tasks.Running).Task, Team: "vision"}}}
	d.ActionsBackend.OfferList = []actions.Offer{{Action: actions.Stop}, {Action: actions.Class, Missing: &actions.Permission{Verb: "patch", Resource: "jobs", Namespace: "ns"}}, {Action: actions.Delete, Missing: &actions.Permission{Verb: "delete", Resource: "jobs", Namespace: "ns"}}}
	address := handlerstest.Serve(t, d) + "/tasks/ns/job/train?uid=u1&done=stop"
	_, page := handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	row := page.Find("#task-actions")
	if row.Find("a").Length() != 1 || row.Find(`a[href="/tasks/ns/job/train/stop?uid=u1"]`).Length() != 1 || !strings.Contains(handlerstest.Text(row), "You cannot do this: change priority class, delete. You need the right to patch jobs, to delete jobs in this namespace.") {
		t.Errorf("offered is %s", handlerstest.Text(row))
	}
	if row.Find("a:not([id])").Length() > 0 {
		t.Error("a button has no id, and becomes another one under the pointer when the row changes")
	}
	if got := handlerstest.Text(page.Find("#task .notice")); got != "Stop requested. Kueue acts on it within seconds." {
		t.Errorf("the notice is %q", got)
	}
	d.ReadOnly = "HyperPod governs this cluster."
	if _, page = handlerstest.Get(t, address); page.Find("#task-actions").Length() > 0 {
		t.Error("something is offered though nothing is written")
	}
	if response, _ := handlerstest.Post(t, strings.Replace(address, "?", "/stop?", 1), url.Values{"uid": {"u1"}}); response.StatusCode != 403 || len(d.ActionsBackend.Done) > 0 {
		t.Errorf("%s, %v", response.Status, d.ActionsBackend.Done)
	}
}

// What would start a task has a button: with fewer pods it is submitted again.
func TestFewerPodsAreSubmitted(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{{Task: working(tasks.Pending).Task, Team: "vision"}}}
	d.SubmitBackend.Manifest = "kept"
	d.MoreDetail = func(detail *queries.Detail) {
		detail.Verdict = &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}, Needed: 6, Available: 4},
			Changes: []explain.Change{{Kind: explain.FewerPods, Pods: 2, Verified: true, Minimal: true}}}
	}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/ns/job/train?uid=u1")
	htmlcheck.Page(t, page)
	if link := page.Find(`a[href="/teams/vision/again?kind=Job&name=train&uid=u1&pods=2"]`); link.Text() != "Submit again with 2 pods" {
		t.Errorf("got %q", handlerstest.Text(page.Find("main")))
	}
}

// The notice after an action is part of the live page, and never contradicts the
// status.
func TestNoticeAgreesWithTheStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		done  string
		state tasks.State
		place int
		want  string
	}{
		"stopped":                   {"stop", tasks.Stopped, 0, "Stopped. Its quota is free for other tasks."},
		"its pods are ending":       {"stop", tasks.Stopping, 0, "Stop requested. Its pods are ending."},
		"Kueue has not stopped it":  {"stop", tasks.Running, 0, "Stop requested. Kueue acts on it within seconds."},
		"ended before it stopped":   {"stop", tasks.Succeeded, 0, ""},
		"resumed, waits":            {"resume", tasks.Pending, 2, "Resumed. It waits in its queue."},
		"resumed, starts":           {"resume", tasks.Starting, 0, "Resumed. It has its quota, and its pods are starting."},
		"resumed, runs":             {"resume", tasks.Running, 0, "Resumed. It is running."},
		"Kueue has not resumed it":  {"resume", tasks.Stopped, 0, "Resume requested. Kueue acts on it within seconds."},
		"first":                     {"front", tasks.Pending, 1, "Moved to front. It is first in its queue."},
		"overtaken again":           {"front", tasks.Pending, 2, "It is 2nd in its queue now."},
		"moved, and runs":           {"front", tasks.Running, 0, ""},
		"its class was changed":     {"class", tasks.Running, 0, "Class changed. It has the priority class dev."},
		"scaled, and waits":         {"scale", tasks.Pending, 1, "Scaled. Its replicas wait for quota."},
		"scaled, and stopped":       {"scale", tasks.Stopped, 0, ""},
		"an action that is unknown": {"x", tasks.Running, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{Items: []queries.Item{{Task: working(tc.state).Task, Team: "vision", Position: tc.place}}, Changed: make(chan struct{}, 1)}
			address := handlerstest.Serve(t, d)
			_, page := handlerstest.Get(t, address+"/tasks/ns/job/train?uid=u1&done="+tc.done)
			htmlcheck.Page(t, page)
			if got := handlerstest.Text(page.Find("#task .notice")); got != tc.want {
				t.Errorf("the notice is %q, want %q", got, tc.want)
			}
			if stream := page.Find("body").AttrOr("data-stream", ""); strings.Contains(stream, "done=") != (tc.want != "") {
				t.Errorf("the stream is %s", stream)
			} else if tc.want != "" {
				handlerstest.Events(t, address+stream)(tc.want)
			}
		})
	}
}
