package teams_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
)

// The rows and the line of other teams add up to the sum.
func TestTeamsAddUp(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	for i := range 300 {
		d.CapacityBackend.Snapshot.Teams = append(d.CapacityBackend.Snapshot.Teams, capacity.TeamSnapshot{
			Name: fmt.Sprintf("team-%03d", i), Resources: []capacity.TeamResource{handlerstest.TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: resources.Amount(i), Usage: resources.Amount(i % 7), Own: resources.Amount(i % 7), LentToCohort: 1})}, Running: i, Waiting: 2 * i,
		})
	}
	address := handlerstest.Serve(t, d)
	for _, path := range []string{"/", "/?tpage=3&tq=team", "/teams", "/teams?page=4&sort=held&order=desc", "/teams?q=nobody-", "/teams?pool=g6", "/teams?resource=aws.amazon.com/neurondevice", "/teams?page=99", "/teams?page=-1"} {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		sum := func(rows *goquery.Selection) (figures [7]int) {
			rows.Each(func(_ int, row *goquery.Selection) {
				row.Find("td:not(.pool-bar)").Each(func(i int, cell *goquery.Selection) {
					if i != 4 { // percentages
						n, err := strconv.Atoi(strings.ReplaceAll(handlerstest.Text(cell), ",", ""))
						if err != nil {
							t.Errorf("%s: %v", path, err)
						}
						figures[i] += n
					}
				})
			})
			return figures
		}
		table := page.Find("#team-list-table")
		if path == "/teams?q=nobody-" {
			if table.Length() != 0 || page.Find(`#team-list a[href="/teams"]`).Length() != 1 {
				t.Error("where no team is found, nothing leads back to all")
			}
			continue
		}
		all := sum(table.Find("#teams-sum"))
		if parts := sum(table.Find("tbody tr, #teams-other")); parts != all || all[5] == 0 {
			t.Errorf("%s: rows add up to %v, and the sum says %v", path, parts, all)
		}
	}
}

func TestTeamList(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	address := handlerstest.Serve(t, d)
	rows := func(path string) (found []string) {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		page.Find("#team-list-table tbody tr").Each(func(_ int, row *goquery.Selection) { found = append(found, handlerstest.Text(row)) })
		return found
	}
	const language, speech, vision = "language 6 0 0 2 0.00 % 0 0", "speech =Speech 0 1 1 0 – 0 4", "vision 15 11 2 0 73.33 % 1,234 0"
	tests := map[string][]string{
		"/teams":                                        {language, speech, vision},
		"/teams?sort=held&order=desc":                   {vision, speech, language},
		"/teams?sort=utilization":                       {speech, language, vision},
		"/teams?sort=utilization&order=desc":            {vision, language, speech},
		"/teams?sort=lent&order=desc":                   {language, speech, vision},
		"/teams?sort=nothing&order=desc":                {language, speech, vision},
		"/teams?q=VIS":                                  {vision},
		"/teams?pool=p5":                                {language, "speech =Speech 0 0 0 0 – 0 4", "vision 6 8 2 0 133.33 % borrowing 1,234 0"},
		"/teams?resource=aws.amazon.com%2Fneurondevice": {"language 0 0 0 0 – 0 0", "speech =Speech 0 0 0 0 – 0 4", "vision 4 0 0 0 0.00 % 1,234 0"},
	}
	for path, want := range tests {
		if got := rows(path); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s shows\n%s", path, strings.Join(got, "\n"))
		}
	}
	_, page := handlerstest.Get(t, address+"/teams?sort=held&order=desc&q=s&pool=p5")
	if got := page.Find(`th[aria-sort=descending] a`).AttrOr("href", ""); got != "/teams?pool=p5&q=s&sort=held" {
		t.Errorf("the other order is at %q", got)
	}
	if got := page.Find("#team-vision a").Eq(1).AttrOr("href", ""); got != "/tasks?status=Running&status=Starting&status=Stopping&team=vision" {
		t.Errorf("its running tasks are at %q", got)
	}
	if stream := page.Find("body").AttrOr("data-stream", ""); stream != "/events/teams?order=desc&pool=p5&q=s&sort=held" {
		t.Errorf("the stream is %q", stream)
	}
}

// A team without a namespace has no page yet: its links lead to its allocation.
func TestTeamWithoutNamespace(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	d.CapacityBackend.Snapshot.Teams = []capacity.TeamSnapshot{{Name: "new"}, {Name: "old", Namespace: "ns"}}
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams")
	for _, address := range []string{"/policies/allocations/new", "/teams/old"} {
		if page.Find(`#team-list-table a[href="`+address+`"]`).Length() != 1 {
			t.Errorf("no link to %s", address)
		}
	}
}

// What other teams have is right although the sum of all is no limit.
func TestOtherTeamsOfUnlimited(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.Cluster()}}
	of := func(name string, nominal resources.Amount) capacity.TeamSnapshot {
		return capacity.TeamSnapshot{Name: name, Namespace: name, Resources: []capacity.TeamResource{handlerstest.TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: nominal})}}
	}
	others := of("", 5)
	d.CapacityBackend.Snapshot.Teams, d.CapacityBackend.Snapshot.Others = []capacity.TeamSnapshot{of("a", 2), of("b", resources.Unlimited)}, &others
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams")
	if got := handlerstest.Text(page.Find("#teams-other td.n").First()); got != "5" {
		t.Errorf("other teams have %q, want 5", got)
	}
	for hidden, want := range map[bool]string{false: "Queues without a team", true: "Other teams teams you cannot see, and queues without a team"} {
		d.CapacityBackend.Snapshot.Hidden = hidden
		_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/teams")
		if got := handlerstest.Text(page.Find("#teams-other th")); got != want {
			t.Errorf("with hidden teams %t, the line is named %q, want %q", hidden, got, want)
		}
	}
}
