package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAdoptFlags(t *testing.T) {
	none := func(string) string { return "" }
	for name, c := range map[string]struct {
		command, line string
		want          adoptOptions // without its configuration
		wantErr       string
	}{
		"nothing":                  {"adopt", "", adoptOptions{output: "text", wait: time.Minute}, ""},
		"a plan as JSON":           {"adopt", "--dry-run -o json", adoptOptions{dryRun: true, output: "json", wait: time.Minute}, ""},
		"a selection":              {"adopt", "--select a,b, --wait 5s", adoptOptions{names: []string{"a", "b"}, output: "text", wait: 5 * time.Second}, ""},
		"YAML without dry run":     {"adopt", "--output yaml", adoptOptions{}, `output "yaml": use text or json, or yaml with --dry-run`},
		"a name without --select":  {"adopt", "research", adoptOptions{}, `unexpected argument "research": name ClusterQueues with --select`},
		"an unknown flag":          {"adopt", "--all", adoptOptions{}, "flag provided but not defined: -all"},
		"release":                  {"release", "a b", adoptOptions{names: []string{"a", "b"}, wait: time.Minute}, ""},
		"release, flags afterward": {"release", "a --wait 5s", adoptOptions{names: []string{"a"}, wait: 5 * time.Second}, ""},
		"no time to wait":          {"adopt", "--wait=-5s", adoptOptions{}, "wait -5s: use a duration above 0"},
		"release of nothing":       {"release", "", adoptOptions{}, "name at least one allocation"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseAdopt(c.command, "usage", strings.Fields(c.line), none)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got error %v, want %q", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(adoptOptions{}), cmpopts.IgnoreFields(adoptOptions{}, "config")); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// The plan names each ClusterQueue with its verdict, and * those that are adopted.
func TestAdoptOutput(t *testing.T) {
	allocation := func(name string) *v1alpha1.ComputeAllocation {
		return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{ClusterQueueName: "queue"}}
	}
	plan := adoption.Plan{
		Queues: []adoption.Queue{
			{Name: "physics", Verdict: adoption.Manage, Allocation: allocation("physics"), Notes: []string{"LocalQueue jobs stays on Hold"}},
			{Name: "speech.example", Verdict: adoption.Observe, Allocation: allocation("speech-example"), Reasons: []string{"it has admission checks (budget)"}},
			{Name: "unused", Verdict: adoption.Refuse, Reasons: []string{"no LocalQueue uses it"}},
		},
		Policy:          &v1alpha1.ClusterPolicy{},
		PriorityClasses: []adoption.PriorityClass{{Name: "gold", Verdict: adoption.Observe, Reason: "its value is 1000"}},
		KueueChanges:    "+ gate",
	}
	selected, err := adopt.Select(plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := adoptOptions{dryRun: true}
	var text bytes.Buffer
	if err := newAdoptOutput("https://lab", plan, selected, o).write(&text, "text", plan, selected); err != nil {
		t.Fatal(err)
	}
	want := `cluster https://lab

* Manage   physics
    LocalQueue jobs stays on Hold

  Observe  speech.example, as team speech-example
    it has admission checks (budget)

  Refuse   unused
    no LocalQueue uses it

* the cluster policy, with a pool for each ResourceFlavor
  Observe  WorkloadPriorityClass gold
    its value is 1000
    The policy changes Kueue's configuration, and Kueue restarts once:
    + gate

Dry run: nothing was created. Those with * would be.
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	var encoded bytes.Buffer
	if err := newAdoptOutput("https://lab", plan, selected, o).write(&encoded, "json", plan, selected); err != nil {
		t.Fatal(err)
	}
	var decoded adoptOutput
	if err := json.Unmarshal(encoded.Bytes(), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded.Queues) != 3 || !decoded.Queues[0].Selected || decoded.Queues[1].Selected || !decoded.CreatesPolicy || decoded.KueueChanges != "+ gate" {
		t.Errorf("got JSON %+v", decoded)
	}
	var yaml bytes.Buffer
	if err := newAdoptOutput("https://lab", plan, selected, o).write(&yaml, "yaml", plan, selected); err != nil {
		t.Fatal(err)
	}
	if documents := strings.Split(yaml.String(), "---\n"); len(documents) != 2 || !strings.Contains(documents[0], "kind: ClusterPolicy") || !strings.Contains(documents[1], "clusterQueueName: queue") {
		t.Errorf("got YAML\n%s", yaml.String())
	}
}

func TestSelection(t *testing.T) {
	plan := adoption.Plan{Queues: []adoption.Queue{{Name: "unused", Verdict: adoption.Refuse, Reasons: []string{"no LocalQueue uses it"}}, {Name: "seen", Verdict: adoption.Observe, Team: "seen"}}}
	_, err := adopt.Select(plan, []string{"unused", "seen", "none"})
	for _, want := range []string{"it cannot be adopted: no LocalQueue uses it", "the allocation of team seen observes it already", "there is no ClusterQueue of this name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
