package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestSimulateCommand answers the question of a file that a console wrote, and
// replaces the names of one with names.
func TestSimulateCommand(t *testing.T) {
	replay := &simulate.Replay{
		ID: "0a1b", Question: &simulate.Question{Ties: 2},
		Snapshot: &simulate.Snapshot{Time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), ClusterQueues: []*kueue.ClusterQueue{{ObjectMeta: metav1.ObjectMeta{Name: "secret"}}}},
	}
	var compressed bytes.Buffer
	if err := replay.Write(&compressed); err != nil {
		t.Fatal(err)
	}
	run := func(data []byte, args ...string) []byte {
		t.Helper()
		path := filepath.Join(t.TempDir(), "snapshot")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := simulateCommand(t.Context(), append([]string{"-f", path}, args...), streams{out: &out, messages: os.Stderr}); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	var report simulate.Report
	if err := json.Unmarshal(run(compressed.Bytes()), &report); err != nil {
		t.Fatal(err)
	}
	if _, has := report.Queues["secret"]; !has || !report.Settled {
		t.Errorf("report %+v, want the queue", report)
	}
	hashed := run(compressed.Bytes(), "-hash-names")
	if strings.Contains(string(hashed), "secret") || !strings.Contains(string(hashed), "2026-11-23T12:00:00Z") {
		t.Errorf("with -hash-names: %s", hashed)
	}
	if err := json.Unmarshal(run(hashed), &report); err != nil || !report.Settled { // not compressed
		t.Errorf("report %+v, error %v", report, err)
	}
}

// TestSimulationMemory reads --simulation-memory.
func TestSimulationMemory(t *testing.T) {
	for _, test := range []struct {
		value     string
		wantBytes int64
		wantError bool
	}{
		{value: "", wantBytes: 1 << 30}, {value: "0"}, {value: "512Mi", wantBytes: 512 << 20}, {value: "10Mi", wantError: true}, {value: "-1Gi", wantError: true}, {value: "much", wantError: true},
	} {
		var args []string
		if test.value != "" {
			args = []string{"--simulation-memory", test.value}
		}
		c, err := parseConfig(args, func(string) string { return "" })
		if (err != nil) != test.wantError || err == nil && c.simulationBytes != test.wantBytes {
			t.Errorf("%q: %d bytes, error %v; want %d, an error: %v", test.value, c.simulationBytes, err, test.wantBytes, test.wantError)
		}
	}
}

// TestSimulationWorker limits the child to one core and to its memory.
func TestSimulationWorker(t *testing.T) {
	cmd := simulationWorker(512 << 20)()
	if !slices.Contains(cmd.Env, "GOMAXPROCS=1") || !slices.Equal(cmd.Args[1:], []string{"simulate", "-worker", "536870912"}) {
		t.Errorf("started as %q with %q", cmd.Args, cmd.Env)
	}
}
