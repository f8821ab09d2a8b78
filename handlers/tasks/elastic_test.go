package tasks_test

import (
	"encoding/csv"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const elasticURL = "/tasks/ns/elasticjob/train"

// minutesAgo returns a whole second.
func minutesAgo(n int) time.Time {
	return time.Now().Truncate(time.Minute).Add(-time.Duration(n) * time.Minute)
}

// elasticTask returns a task of 8 to 32 pods of two GPUs, which has 24 now, and the changes
// of its size: 2 to 5 in its status, and before them number 1 in history only.
func elasticTask() (*handlerstest.Backend, *handlerstest.HistoryBackend) {
	job := &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "e1"}}
	job.Spec.ElasticPolicy = v1alpha1.ElasticPolicy{MinReplicas: 8, MaxReplicas: 32}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("2")}}}}
	job.Status = v1alpha1.ElasticJobStatus{Replicas: 24, Minimum: 8, State: v1alpha1.ElasticRunning, GrowsAfter: &metav1.Time{Time: time.Now().Add(time.Hour)}}
	event := func(number int64, at time.Time, from, to int32, cause v1alpha1.ScaleCause, workload types.UID) v1alpha1.ScaleEvent {
		return v1alpha1.ScaleEvent{Number: number, Time: metav1.NewTime(at), From: from, To: to, Minimum: 8, Cause: cause, ForWorkload: workload}
	}
	events := []v1alpha1.ScaleEvent{
		event(1, minutesAgo(120), 0, 8, v1alpha1.ScaleAdmitted, ""), event(2, minutesAgo(60), 8, 32, v1alpha1.ScaleIdleCompute, ""),
		event(3, minutesAgo(30), 32, 24, v1alpha1.ScalePreempted, "w1"), event(4, minutesAgo(20), 24, 16, v1alpha1.ScaleWithdrawn, "w2"),
		event(5, minutesAgo(10), 16, 24, v1alpha1.ScaleIdleCompute, ""),
	}
	own := &tasks.Task{UID: "j2", Namespace: "ns", Kind: "Job", Name: "own-job"}
	scaling := &queries.Scaling{Job: job}
	past := handlerstest.NewHistory()
	past.Scales = map[string][]history.ScaleEvent{}
	for _, e := range events {
		if e.Number > 1 {
			scaling.Scales = append(scaling.Scales, queries.Scale{ScaleEvent: e, Hidden: e.ForWorkload == "w1"})
			if e.ForWorkload == "w2" {
				scaling.Scales[len(scaling.Scales)-1].For, scaling.Scales[len(scaling.Scales)-1].ForTeam = own, "vision"
			}
		}
		recorded := history.ScaleEvent{
			Namespace: "ns", Name: "train", TaskUID: "e1", Team: "vision", Number: e.Number, At: e.Time.Time, From: e.From, To: e.To, Minimum: e.Minimum, Cause: string(e.Cause),
			Accelerator: gpu, PerPod: 2, WorkloadUID: string(e.ForWorkload),
		}
		switch e.Number {
		case 2:
			recorded.Idle = &history.IdleSources{Own: true, Unallocated: true, Lenders: []history.TeamRef{{Namespace: "secret-ns", Team: "secret-team"}, {Namespace: "secret-ns-2", Team: "secret-team-2"}, {Namespace: "ns", Team: "vision"}}}
		case 3:
			recorded.For = history.TaskRef{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "u9", Team: "secret-team"}
		}
		past.Scales["e1"] = append(past.Scales["e1"], recorded)
	}
	d := &handlerstest.Backend{Past: past, UserScope: &handlerstest.OwnScope, Items: []queries.Item{{
		Task: &tasks.Task{UID: "e1", Namespace: "ns", Kind: v1alpha1.ElasticJobKind, Name: "train", State: tasks.Running, Submitted: minutesAgo(121)}, Team: "vision",
	}}}
	d.MoreDetail = func(detail *queries.Detail) { detail.Scaling = scaling }
	return d, past
}

// gained is what the task of elasticTask gained in GPU-hours: 24 pods for half an hour, 16
// and 8 for ten minutes each, and 16 for ten, of two GPUs.
const gained = "37.33 GPU-hours"

func TestElasticTask(t *testing.T) {
	d, _ := elasticTask()
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
	htmlcheck.Page(t, page)
	card := handlerstest.Text(page.Find("#task-elastic dl"))
	for _, want := range []string{"Size 24 of 8–32 pods: 8 guaranteed, 16 growth", "Gained by growth " + gained, "Grows again not before"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q: %s", want, card)
		}
	}
	rows := page.Find("#scales-table tbody tr")
	var got []string
	for i := range rows.Length() {
		cells := rows.Eq(i).Find("td")
		got = append(got, strings.Join(strings.Fields(cells.Eq(0).Text()), " ")+" | "+strings.Join(strings.Fields(cells.Eq(1).Text()), " ")+" | "+handlerstest.Text(cells.Eq(2)))
	}
	for i, want := range []string{
		"16 →to 24 | Grew into idle compute | 5.33", "24 →to 16 | Growth withdrawn for own-job of team vision | 2.67", "32 →to 24 | Preempted for another team | 5.33",
		"8 →to 32 | Grew into idle compute its team's own quota, unallocated compute, quota lent by other teams, quota lent by vision | 24", "0 →to 8 | Started with its minimum | 0",
	} {
		if i >= len(got) || got[i] != want {
			t.Errorf("row %d: got %q, want %q", i, got, want)
		}
	}
	if page.Find(`#scale-4 a[href="/tasks/ns/job/own-job"]`).Length() != 1 || page.Find(`#task-scales a[href="`+elasticURL+`/scaling.csv"]`).Length() != 1 {
		t.Error("the other task or the CSV is not linked")
	}
	if strings.Contains(page.Text(), "secret") {
		t.Errorf("the page names others: %s", handlerstest.Text(page.Find("main")))
	}
	chart := page.Find("#scale-chart-table tbody tr") // newest first, and until now
	if chart.Length() != 6 || handlerstest.Text(chart.Eq(0).Find("td")) != "8 16" || handlerstest.Text(chart.Eq(4).Find("td")) != "8 24" || handlerstest.Text(chart.Eq(5).Find("td")) != "8 0" {
		t.Errorf("the chart has %s", handlerstest.Text(chart))
	}
	if page.Find("#task-sizes").Length() != 0 || page.Find(`script[src*="charts.js"]`).Length() != 1 {
		t.Error("the page lists sizes twice, or cannot draw its chart")
	}

	everything := access.Scope{All: true}
	d.UserScope = &everything
	d.MoreDetail(&queries.Detail{})
	if _, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL); page.Find(`#scale-3 a[href="/tasks/secret-ns/job/secret-job?uid=u9"]`).Length() != 1 || !strings.Contains(handlerstest.Text(page.Find("#scale-3")), "of team secret-team") {
		t.Errorf("an admin does not see for whom it was preempted: %s", handlerstest.Text(page.Find("#scale-3")))
	}
}

// Without history, or if it is unavailable, the page shows what the status has, and says
// what is missing.
func TestElasticTaskWithoutHistory(t *testing.T) {
	d, past := elasticTask()
	past.Failure = errors.New("disk full at 10.0.0.7")
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
	htmlcheck.Page(t, page)
	text := handlerstest.Text(page.Find("#task-scales"))
	if page.Find("#scales-table tbody tr").Length() != 4 || !strings.Contains(text, "History cannot be read now: only the latest changes are listed.") || !strings.Contains(text, "Change 1 is not known.") {
		t.Errorf("with a history that fails: %s", text)
	}
	if response, _ := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL+"/scaling.csv"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the file answers %s", response.Status)
	}
	d.Past = nil
	_, page = handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
	if rows := page.Find("#scales-table tbody tr").Length(); rows != 4 || strings.Contains(page.Find("#task-scales").Text(), "History") {
		t.Errorf("without history %d rows: %s", rows, handlerstest.Text(page.Find("#task-scales")))
	}
}

// The size of a gap is not guessed: the chart has no value, and the sum nothing.
func TestElasticTaskWithGap(t *testing.T) {
	d, past := elasticTask()
	d.MoreDetail = nil
	past.Scales["e1"] = append(past.Scales["e1"][:1:1], past.Scales["e1"][3:]...) // without numbers 2 and 3
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#task-elastic")); !strings.Contains(text, "8 GPU-hours") || !strings.Contains(text, "Changes of size in between are not known.") {
		t.Errorf("the card: %s", text)
	}
	if first := page.Find("#scale-chart-table tbody tr").Last(); first.Find("td[data-value]").Length() != 0 {
		t.Errorf("the gap has values: %s", handlerstest.Text(first))
	}
	if text := handlerstest.Text(page.Find("#task-scales")); !strings.Contains(text, "Changes 2 to 3 are not known.") || !strings.Contains(handlerstest.Text(page.Find("#scale-1")), "–") {
		t.Errorf("the list: %s", text)
	}
}

func TestElasticCSV(t *testing.T) {
	d, _ := elasticTask()
	text := handlerstest.Download(t, handlerstest.Serve(t, d)+elasticURL+"/scaling.csv")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 6 || strings.Contains(text, "secret") {
		t.Fatalf("the file has %d rows (%v): %s", len(rows), err, text)
	}
	for i, want := range map[int]string{
		2: "2,8,32,8,IdleCompute,its team's own quota, unallocated compute, quota lent by other teams, quota lent by vision,,,,,,,nvidia.com/gpu,2,43200,86400,24.000,,",
		3: "3,32,24,8,Preempted,,,,,another team,,,nvidia.com/gpu,2,9600,19200,5.333,,",
		4: "4,24,16,8,Withdrawn,,ns,Job,own-job,vision,,,nvidia.com/gpu,2,4800,9600,2.667,,",
	} {
		row := append([]string{rows[i][0]}, rows[i][2:15]...)
		if got := strings.Join(append(row, rows[i][16:]...), ","); got != want {
			t.Errorf("row %d: got %s, want %s", i, got, want)
		}
	}
	d, past := elasticTask()
	past.Scales = nil
	d.MoreDetail = nil
	if response, _ := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL+"/scaling.csv"); response.StatusCode != http.StatusNotFound {
		t.Errorf("the file of a task that is not elastic answers %s", response.Status)
	}
}

// A deleted elastic task keeps its changes of size. Those of a task of another team are
// not found, like the task.
func TestPastElasticTask(t *testing.T) {
	d, past := elasticTask()
	d.Items = nil
	deleted := handlerstest.DeletedTask
	deleted.Kind, deleted.UID, deleted.FinishedAt, deleted.DeletedAt = v1alpha1.ElasticJobKind, "e1", time.Time{}, minutesAgo(0)
	hidden := handlerstest.OtherTask
	past.Records, past.Scales["u9"] = []history.Task{deleted, hidden}, past.Scales["e1"]
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+elasticURL)
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#task-elastic")); !strings.Contains(text, gained) || page.Find("#scales-table tbody tr").Length() != 5 || page.Find("#scale-chart-table").Length() != 1 {
		t.Errorf("the page has %s", text)
	}
	if text := handlerstest.Download(t, address+elasticURL+"/scaling.csv?uid=e1"); !strings.Contains(text, "5.333") || strings.Contains(text, "secret") {
		t.Errorf("the file is %s", text)
	}
	for _, path := range []string{"/tasks/secret-ns/job/secret-job/scaling.csv", elasticURL + "/scaling.csv?uid=u9", "/tasks/secret-ns/job/secret-job/scaling.csv?uid=u9", "/tasks/ns/elasticjob/other/scaling.csv?uid=e1"} {
		if response, page := handlerstest.Get(t, address+path); response.StatusCode != http.StatusNotFound || strings.Contains(page.Text(), "Preempted") {
			t.Errorf("%s answers %s", path, response.Status)
		}
	}
}

// A list shows how many pods an elastic task has, and the sizes that it can have.
func TestElasticTaskInList(t *testing.T) {
	policy := &v1alpha1.ElasticPolicy{MinReplicas: 8, MaxReplicas: 32}
	items := []queries.Item{
		{Task: &tasks.Task{UID: "1", Namespace: "ns", Kind: v1alpha1.ElasticJobKind, Name: "runs", State: tasks.Running, Size: tasks.Size{Min: 8, Wanted: 24, Admitted: 24, Guaranteed: 8}}, Policy: policy},
		{Task: &tasks.Task{UID: "2", Namespace: "ns", Kind: v1alpha1.ElasticJobKind, Name: "waits", State: tasks.Pending}, Policy: policy},
	}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{Items: items})+"/tasks")
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{"#task-1": "24 pods (8–32)", "#task-2": "8–32 pods"} {
		if text := handlerstest.Text(page.Find(id)); !strings.Contains(text, want) {
			t.Errorf("the row %s lacks %q: %s", id, want, text)
		}
	}
}

// While growth waits for nodes, the page shows for which, and afterwards why it is gone and
// when the task asks again.
func TestElasticTaskAsksForNodes(t *testing.T) {
	until := minutesAgo(-10)
	for want, change := range map[string]func(*queries.Scaling){
		"Asks for 2 nodes of ml.p5.48xlarge since": func(s *queries.Scaling) {
			s.Nodes, s.Pool = 2, "ml.p5.48xlarge"
			s.Job.Status.Provisioning = &v1alpha1.Provisioning{UnscheduledReplicas: 8, Since: &metav1.Time{Time: minutesAgo(0)}, Until: &metav1.Time{Time: until}}
		},
		"Asks for nodes for 8 pods since": func(s *queries.Scaling) {
			s.Job.Status.Provisioning = &v1alpha1.Provisioning{UnscheduledReplicas: 8, Since: &metav1.Time{Time: minutesAgo(0)}, Until: &metav1.Time{Time: until}}
		},
		"Asks for nodes again not before": func(s *queries.Scaling) {
			s.Job.Status.Provisioning = &v1alpha1.Provisioning{Timeouts: 1, After: &metav1.Time{Time: until}}
			s.Scales = append(s.Scales, queries.Scale{ScaleEvent: v1alpha1.ScaleEvent{Number: 6, Time: metav1.NewTime(minutesAgo(0)), From: 24, To: 24, Minimum: 8, Cause: v1alpha1.ScaleNoNodes}})
		},
		"Asks for nodes No Growth does not ask for nodes: one pod blocks all.": func(s *queries.Scaling) {
			s.Job.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProvisioning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAdmissionBlocked, Message: "growth does not ask for nodes: one pod blocks all"}}
		},
	} {
		d, _ := elasticTask()
		set := d.MoreDetail
		d.MoreDetail = func(detail *queries.Detail) { set(detail); change(detail.Scaling) }
		_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
		htmlcheck.Page(t, page)
		if card := handlerstest.Text(page.Find("#task-elastic dl")); !strings.Contains(card, want) {
			t.Errorf("the card lacks %q: %s", want, card)
		}
		if row := handlerstest.Text(page.Find("#scale-6")); strings.HasPrefix(want, "Asks for nodes again") && !strings.Contains(row, "No nodes came in time: growth that waited for them was withdrawn") {
			t.Errorf("the change is %q", row)
		}
	}
}

// A change of the policy is listed with who changed what.
func TestElasticPolicyChange(t *testing.T) {
	d, _ := elasticTask()
	set := d.MoreDetail
	d.MoreDetail = func(detail *queries.Detail) {
		set(detail)
		detail.Scaling.Scales = append(detail.Scaling.Scales, queries.Scale{ScaleEvent: v1alpha1.ScaleEvent{
			Number: 6, Time: metav1.NewTime(minutesAgo(0)), From: 24, To: 24, Minimum: 8, Cause: v1alpha1.ScalePolicy, By: "ada",
			Changes: []v1alpha1.PolicyChange{{Field: "maxReplicas", From: "32", To: "64"}, {Field: "gracefulShutdownTimeoutInSeconds", From: "30", To: "90"}, {Field: "replicaIncrementStep", From: "8"}},
		}})
	}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+elasticURL)
	htmlcheck.Page(t, page)
	want := "Policy changed by ada Maximum 32 → 64, Time to save 30 s → 90 s, Step 8 → none"
	if row := handlerstest.Text(page.Find("#scale-6")); !strings.Contains(row, want) {
		t.Errorf("the change is %q, want %q", row, want)
	}
}
