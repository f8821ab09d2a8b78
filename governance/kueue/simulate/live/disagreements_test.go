package live

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestReplays keeps the snapshots of disagreements without names, within bounds of
// number, size and age.
func TestReplays(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var logged bytes.Buffer
	s := &Simulator{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&logged, nil))}
	snapshot := &simulate.Snapshot{Time: now, Workloads: []*kueue.Workload{{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-team", Name: "secret-task"}}}}
	q := &simulate.Question{Target: "secret-team/secret-task"}
	disagree := func() {
		s.Disagrees("Quota", snapshot, q)
		s.replays.writing.Wait()
	}
	disagree()
	disagree() // in the same minute
	list := s.Replays()
	if len(list) != 1 {
		t.Fatalf("%d replays within a minute, want 1", len(list))
	}
	if text := logged.String(); !strings.Contains(text, "replay="+list[0].ID) || strings.Contains(text, "secret") {
		t.Errorf("log: %s", text)
	}
	z, err := gzip.NewReader(bytes.NewReader(list[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("the replay contains names: %s", text)
	}
	var replay simulate.Replay
	if err := json.Unmarshal(text, &replay); err != nil {
		t.Fatal(err)
	}
	if w := replay.Snapshot.Workloads; len(w) != 1 || simulate.WorkloadKey(w[0]) != replay.Question.Target || replay.Constraint != "Quota" || !replay.Time.Equal(snapshot.Time) {
		t.Errorf("replay %+v of question %+v", replay, replay.Question)
	}

	for range 2 * maxReplays {
		now = now.Add(replayPeriod)
		disagree()
	}
	if list := s.Replays(); len(list) != maxReplays || !list[0].Time.Equal(now) {
		t.Errorf("%d replays, the first of %v; want %d, the latest first", len(list), list[0].Time, maxReplays)
	}
	s.replays.add(Replay{ID: "large", Time: now, Data: make([]byte, maxReplayBytes-1)}, now)
	if list := s.Replays(); len(list) != 1 || list[0].ID != "large" {
		t.Errorf("%d replays beside a large one, want none", len(list)-1)
	}
	now = now.Add(maxReplayAge + time.Second)
	if list := s.Replays(); len(list) != 0 {
		t.Errorf("%d replays of yesterday", len(list))
	}
}

// TestVersionNote names another minor version and unknown gates, and nothing else.
func TestVersionNote(t *testing.T) {
	for _, test := range []struct {
		name, version string
		gates         []string
		want          string
	}{
		{name: "same minor version", version: "v0.19.5"},
		{name: "unknown version"},
		{name: "another minor version", version: "v0.18.3", want: "The cluster runs Kueue v0.18.3, and this is simulated with v0.19.2, which can decide differently."},
		{name: "unknown gates", version: "v0.19.2", gates: []string{"New", "Newer"}, want: "Kueue v0.19.2 does not have the feature gates New, Newer of the cluster."},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := versionNote("v0.19.2", &simulate.Snapshot{KueueVersion: test.version}, &simulate.Report{UnknownGates: test.gates})
			if got != test.want {
				t.Errorf("note %q, want %q", got, test.want)
			}
		})
	}
	if got := versionNote("v0.19.2", &simulate.Snapshot{}, nil); got != "" {
		t.Errorf("note %q without a report", got)
	}
}

// TestRefused asks a simulator that is disabled, and one about too large a cluster.
func TestRefused(t *testing.T) {
	of := &simulate.Snapshot{Workloads: make([]*kueue.Workload, 2)}
	for want, s := range map[error]*Simulator{ErrDisabled: nil, ErrTooLarge: {MaxWorkloads: 1}} {
		if _, err := s.Answer(t.Context(), of, &simulate.Question{Draws: make([]simulate.Draw, 1)}); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	if _, err := (*Simulator)(nil).Snapshot(t.Context()); !errors.Is(err, ErrDisabled) {
		t.Errorf("a snapshot of a disabled simulator: %v", err)
	}
}
