package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testActivity records entries by two consoles, some of them twice, and reads them by
// each filter, page by page, until they are older than the retention.
func testActivity(t *testing.T, url string) {
	ctx := t.Context()
	var all []Activity // the latest first
	for n := range 600 {
		e := Activity{
			ID: fmt.Sprintf("r%04d", n), At: start.Add(time.Duration(n/3) * time.Minute), Actor: "ada", Source: SourceConsole, Action: "stop",
			Kind: "Workload", Namespace: "ns-vision", Name: "train", UID: fmt.Sprintf("u%d", n%7), Team: "vision", Outcome: Succeeded,
		}
		switch n % 5 {
		case 1:
			e.Actor, e.Action, e.Changes, e.Reason = "bob", "update", []string{`spec.active: true → false`, `a "quoted" 100%_\ value`}, "it was too late\x00"
		case 2:
			e.Team, e.Namespace, e.Outcome, e.Error = "nlp", "ns-nlp", Refused, "forbidden"
		case 3:
			e.Team, e.Namespace, e.Kind, e.Name, e.Source, e.Address = "", "", "ClusterPolicy", "100%_Cluster", SourceOutside, "192.0.2.7"
		}
		all = append(all, e)
	}
	s, other := open(t, url, Options{}), open(t, url, Options{})
	must[time.Time](t)(other.BeginTerm(ctx)) // a replica that does not lead records too
	ok(t, s.RecordActivity(ctx, all[:400]))
	ok(t, other.RecordActivity(ctx, all[300:]))
	changed := slices.Clone(all[:1])
	changed[0].Actor = "mallory"
	ok(t, s.RecordActivity(ctx, changed))
	ok(t, s.RecordActivity(ctx, nil))
	slices.Reverse(all)
	for i := range all {
		if all[i].Reason != "" {
			all[i].Reason = "it was too late"
		}
	}
	for name, one := range map[string]struct {
		query ActivityQuery
		want  func(Activity) bool
	}{
		"all":         {ActivityQuery{}, func(Activity) bool { return true }},
		"a team":      {ActivityQuery{Teams: []string{"nlp"}}, func(e Activity) bool { return e.Team == "nlp" }},
		"and of none": {ActivityQuery{Teams: []string{"nlp", ""}}, func(e Activity) bool { return e.Team != "vision" }},
		"no teams":    {ActivityQuery{Teams: []string{}}, func(Activity) bool { return false }},
		"an actor":    {ActivityQuery{Actor: "bob"}, func(e Activity) bool { return e.Actor == "bob" }},
		"an action":   {ActivityQuery{Action: "stop", Kind: "Workload"}, func(e Activity) bool { return e.Action == "stop" && e.Kind == "Workload" }},
		"an object":   {ActivityQuery{UID: "u3"}, func(e Activity) bool { return e.UID == "u3" }},
		"a name":      {ActivityQuery{NameContains: "0%_cl"}, func(e Activity) bool { return e.Kind == "ClusterPolicy" }},
		"a range": {ActivityQuery{From: start.Add(10 * time.Minute), To: start.Add(20 * time.Minute)}, func(e Activity) bool {
			return !e.At.Before(start.Add(10*time.Minute)) && e.At.Before(start.Add(20*time.Minute))
		}},
		"nobody's own": {ActivityQuery{Actor: "mallory"}, func(Activity) bool { return false }},
	} {
		var want, got []Activity
		for _, e := range all {
			if one.want(e) {
				want = append(want, e)
			}
		}
		one.query.Limit = 70
		for {
			page := must[[]Activity](t)(s.Activity(ctx, one.query))
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			one.query.Before = &got[len(got)-1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	ok(t, other.Forget(ctx, start.Add(401*day24)))
	if left := must[[]Activity](t)(s.Activity(ctx, ActivityQuery{})); len(left) != 0 {
		t.Errorf("%d entries are left after the retention", len(left))
	}
}

const day24 = 24 * time.Hour
