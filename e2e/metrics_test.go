package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetrics checks the metrics of the built console, and that the Grafana dashboard
// queries only metrics that it exports.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t) // creates the admin's binding
	scraped := freeAddress(t)
	address := replica(t, "metrics", append(signInEnv(c), "KUOTA_METRICS_ADDRESS="+scraped)...)
	must(t, waitReady(address))
	admin := newUser(t, address, "admin")
	const requests = 30
	for i := range requests {
		response, err := admin.Get(fmt.Sprintf("%s/tasks/nowhere-%d/job/task-%d", address, i, i))
		must(t, err)
		response.Body.Close()
	}
	stream, err := admin.Get(address + "/tasks/events")
	must(t, err)
	defer stream.Body.Close()
	first := make([]byte, 1)
	_, err = io.ReadFull(stream.Body, first)
	must(t, err)

	response, err := http.Get("http://" + scraped + "/metrics")
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	if !strings.Contains(string(text), "\nkuota_build_info{") {
		t.Error("got no metric kuota_build_info, want it")
	}
	for _, want := range []string{
		fmt.Sprintf(`kuota_http_request_duration_seconds_count{code="404",method="GET",route="/tasks/:namespace/:kind/:name"} %d`, requests),
		`kuota_stream_clients{route="/tasks/events"} 1`,
		`kuota_watch_synced{kind="Workload.kueue.x-k8s.io"} 1`,
		`kuota_watch_synced{kind="ComputeAllocation.kuota.dev"} 1`,
		`kuota_watch_synced{kind="Secret"} 1`,
		`kuota_watch_open{kind="ControllerRevision.apps"} 1`,
		`kuota_watch_open{kind="Pod"} 1`,
		`kuota_watch_errors_total{kind="Node"} 0`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("got no metric %s, want it", want)
		}
	}
	for _, start := range []string{"kuota_cluster_contact_age_seconds ", `kuota_tasks{state="Running"} `, `controller_runtime_reconcile_total{controller="`} {
		if !strings.Contains(string(text), "\n"+start) {
			t.Errorf("got no line with prefix %s, want one", start)
		}
	}
	var ours []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "nowhere-") {
			t.Errorf("metric %s: got an address in a label, want a route", line)
		}
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "kuota_") {
			ours = append(ours, line)
		}
	}
	problems, err := promlint.New(strings.NewReader(strings.Join(ours, ""))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: got problems %v and error %v, want neither", problems, err)
	}
	testDashboardQueries(t, string(text), "kuota.json", 20)
	if strings.Contains(string(text), "kuota_team_") {
		t.Error("got metrics of teams without the flag, want none")
	}
}

// TestTeamMetrics checks that the metrics of a team are the figures of its page, and
// that the Grafana dashboard of teams queries only metrics that the console exports.
func TestTeamMetrics(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	const instanceType = "ml.trn1.metrics"
	trainiumNode(t, instanceType)
	team := makePoolTeam(t, instanceType, "metrics", "accelerators: 8")
	c.Apply(t, neuronJob(team, "runs", 6))
	runsSoon(t, team, "runs")
	c.Apply(t, neuronJob(team, "waits", 16))
	scraped := freeAddress(t)
	address := replica(t, "team-metrics", append(signInEnv(c), "KUOTA_METRICS_ADDRESS="+scraped, "KUOTA_TEAM_METRICS=true")...)
	must(t, waitReady(address))
	var text string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		response, err := http.Get("http://" + scraped + "/metrics")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		text = string(body)
		of := fmt.Sprintf(`pool="%s",resource="aws.amazon.com/neurondevice",team="%s"`, instanceType, team)
		for _, want := range []string{
			"kuota_team_quota{" + of + "} 8\n", "kuota_team_used{" + of + "} 6\n", "kuota_team_borrowed{" + of + "} 0\n", "kuota_team_lent{" + of + "} 0\n",
			`kuota_team_running_tasks{team="` + team + `"} 1` + "\n", `kuota_team_waiting_tasks{team="` + team + `"} 1` + "\n", `kuota_team_oldest_wait_seconds{team="` + team + `"} `,
		} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("got no metric %s, want it; error %w", want, err)
			}
		}
		return err
	})
	testDashboardQueries(t, text, "teams.json", 10)
}

// dashboard has the fields of Grafana's JSON that the test checks.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Datasource  struct{ UID string }
		Targets     []struct{ RefID, Expr string }
	}
}

var (
	inBrackets = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring)\s*\([^)]*\)`)
	nameInExpr = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
)

// metricsIn returns the names of the metrics in a PromQL expression.
func metricsIn(expr string) (names []string) {
	for _, word := range nameInExpr.FindAllString(inBrackets.ReplaceAllString(expr, " "), -1) {
		if !strings.HasSuffix(word, "(") && !slices.Contains([]string{"bool", "or", "and", "unless"}, strings.TrimSpace(word)) {
			names = append(names, strings.TrimSpace(word))
		}
	}
	return names
}

// testDashboardQueries checks the layout of a dashboard, and its queries against the
// scraped metrics: at least so many.
func testDashboardQueries(t *testing.T, scraped, file string, least int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(clustertest.Root(), "deploy", "grafana", file))
	must(t, err)
	var d dashboard
	must(t, json.Unmarshal(b, &d))
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 39 {
		t.Errorf("got uid %q, title %q and schema %d, want a uid, a title and at least schema 39", d.UID, d.Title, d.SchemaVersion)
	}
	exported := map[string]bool{}
	for line := range strings.Lines(scraped) {
		if name := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`).FindString(line); name != "" {
			exported[name] = true
		}
	}
	ids, cells, named := map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: got ID %d of another panel, want a unique ID", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: got a panel beyond column 24, want at most 24", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("%s overlaps %s", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("%s: got datasource %q and %d queries, want ${datasource} and at least 1", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			names := metricsIn(target.Expr)
			if len(names) == 0 {
				t.Errorf("%s: got no metric in %s, want at least 1", p.Title, target.Expr)
			}
			for _, name := range names {
				named++
				if !exported[name] {
					t.Errorf("%s: the console does not export %s", p.Title, name)
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" && !exported[regexp.MustCompile(`label_values\((\w+),`).FindStringSubmatch(v.Definition)[1]] {
			t.Errorf("variable %s: the console does not export the metric of %s", v.Name, v.Definition)
		}
	}
	if named < least {
		t.Errorf("got %d metrics in queries, want at least %d", named, least)
	}
}
