package usage_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"
	"kuota.dev/kuota/handlers/handlerstest"
)

const (
	monthTeams = 1000
	monthTasks = 400_000
	monthHours = 31 * 24
	pageP95    = 500 * time.Millisecond
	firstByte  = time.Second
)

// TestMonth measures the report of a month of 1,000 teams whose usage changes every hour and
// of 400,000 tasks, over HTTP and with the real database, and prints figures. Its rows must add
// up exactly.
func TestMonth(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	t.Run("SQLite", func(t *testing.T) { measureMonth(t, "sqlite", filepath.Join(t.TempDir(), "history.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { measureMonth(t, "postgres", historytest.Start(t).Database(t)) })
}

func measureMonth(t *testing.T, database, url string) {
	store, err := history.Open(t.Context(), url, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := month{from: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)}
	m.record(t, store)
	address := handlerstest.Serve(t, &handlerstest.Backend{Past: store, UserScope: &access.Scope{All: true}})
	const query = "?from=2026-10-01&to=2026-10-31&resource=" + catalog.GPU
	for _, rows := range []string{"", "&rows=class", "&rows=kind", "&rows=person", "&rows=task"} {
		name := strings.TrimPrefix(rows+"_", "&rows=")
		var took []time.Duration
		for range 20 {
			begun := time.Now()
			get(t, address+"/usage"+query+"&zone=Europe/Berlin"+rows)
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		figure(database, "usage_page_"+name+"p95", took[18])
		if took[18] > pageP95 {
			t.Errorf("the page by %q: %s at p95, want at most %s", rows, took[18], pageP95)
		}
		begun := time.Now()
		response, err := http.Get(address + "/usage.csv" + query + rows)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		first := time.Since(begun)
		size, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		figure(database, "usage_csv_"+name+"first_byte", first)
		figure(database, "usage_csv_"+name+"all", time.Since(begun))
		t.Logf("the file by %q has %d bytes", rows, size)
		if first > firstByte {
			t.Errorf("the file by %q begins after %s, want at most %s", rows, first, firstByte)
		}
	}
	m.check(t, address, query)
}

func figure(database, name string, took time.Duration) {
	fmt.Printf("figure %s_%s %.0f ms\n", database, name, took.Seconds()*1000)
}

// month is what was recorded, and its sums.
type month struct {
	from            time.Time
	physical, tasks big.Int // × ms
}

// record records both through the interface of the recorder.
func (m *month) record(t *testing.T, store *history.Store) {
	t.Helper()
	const perNode = 40_000
	key := func(team string, measure history.Measure) history.SeriesKey {
		return history.SeriesKey{Team: team, Pool: "a100", Resource: catalog.GPU, Measure: measure}
	}
	hour := func(n int) time.Time { return m.from.Add(time.Duration(n) * time.Hour) }
	for h := range monthHours + 1 {
		sample := history.Sample{At: hour(h)}
		sums := map[history.Measure]int64{history.Outside: int64(h % 7), history.Unhealthy: 8}
		for team := range monthTeams {
			for i, measure := range []history.Measure{history.OwnBound, history.BorrowedBound, history.LentToCohort} {
				amount := int64((team*7919 + h*(104729+i)) % 17)
				sums[measure] += amount
				sample.Amounts = append(sample.Amounts, history.Amount{SeriesKey: key(fmt.Sprintf("team-%d", team), measure), Amount: amount})
			}
		}
		delete(sums, history.LentToCohort)
		idle := int64(perNode)
		for measure, amount := range sums {
			sample.Amounts = append(sample.Amounts, history.Amount{SeriesKey: key("", measure), Amount: amount})
			idle -= amount
		}
		sample.Amounts = append(sample.Amounts, history.Amount{SeriesKey: key("", history.Physical), Amount: perNode}, history.Amount{SeriesKey: key("", history.Idle), Amount: idle})
		if err := store.AppendSamples(t.Context(), []history.Sample{sample}); err != nil {
			t.Fatal(err)
		}
	}
	m.physical.SetInt64(perNode * monthHours * time.Hour.Milliseconds())
	step := monthHours * time.Hour / monthTasks
	var records []history.Record
	for n := range monthTasks {
		uid, began := fmt.Sprintf("t-%06d", n), m.from.Add(time.Duration(n)*step).Truncate(time.Millisecond)
		ended := began.Add(time.Duration(600+n%3600) * time.Second)
		if end := hour(monthHours); ended.After(end) {
			ended = end
		}
		amount := int64(1 + n%8)
		m.tasks.Add(&m.tasks, big.NewInt(amount*ended.Sub(began).Milliseconds()))
		task := history.Task{
			UID: uid, Namespace: fmt.Sprintf("hyperpod-ns-team-%d", n%monthTeams), Kind: []string{"Job", "RayJob"}[n%2], Name: "train-" + uid, Team: fmt.Sprintf("team-%d", n%monthTeams),
			PriorityClass: []string{"low", "middle", "high"}[n%3], SubmittedBy: fmt.Sprintf("user-%d@example.com", n%5000), State: "Finished", SubmittedAt: began, FinishedAt: ended,
		}
		records = append(records, history.Record{Task: task, Usage: []history.TaskUsage{{WorkloadUID: uid, Began: began, Ended: ended, Amounts: map[history.PoolResource]int64{{Pool: "a100", Resource: catalog.GPU}: amount}}}})
		if len(records) == 500 || n == monthTasks-1 {
			if err := store.RecordTasks(t.Context(), records); err != nil {
				t.Fatal(err)
			}
			records = records[:0]
		}
	}
}

// check fails the test unless the rows of the files add up to what was recorded, exactly.
func (m *month) check(t *testing.T, address, query string) {
	t.Helper()
	sum := func(rows, only string) *big.Int {
		var reports []struct {
			Lines []struct {
				Row     string
				Seconds json.Number
			}
		}
		if err := json.Unmarshal(get(t, address+"/usage.json"+query+rows), &reports); err != nil {
			t.Fatal(err)
		}
		all := new(big.Rat)
		for _, report := range reports {
			for _, l := range report.Lines {
				if seconds, ok := new(big.Rat).SetString(string(l.Seconds)); ok && (only == "" || l.Row == only) {
					all.Add(all, seconds)
				}
			}
		}
		if all.Mul(all, big.NewRat(1000, 1)); !all.IsInt() {
			t.Errorf("%s adds up to %s ms", rows, all.FloatString(6))
		}
		return all.Num()
	}
	if got := sum("", ""); got.Cmp(&m.physical) != 0 {
		t.Errorf("the rows add up to %s ms, and the nodes had %s", got, &m.physical)
	}
	for _, rows := range []string{"class", "kind", "person", "task"} {
		if got := sum("&rows="+rows, "tasks"); got.Cmp(&m.tasks) != 0 {
			t.Errorf("tasks by %s add up to %s ms, and used %s", rows, got, &m.tasks)
		}
	}
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v: %.300s", address, response.Status, err, body)
	}
	return body
}
