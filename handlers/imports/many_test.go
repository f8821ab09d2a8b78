package imports_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// saveAll reads a text, reviews all its teams, calls between, saves, and follows the progress to
// its end. It returns the review and the outcome.
func saveAll(t *testing.T, d *handlerstest.Backend, text string, between func()) (review, outcome string) {
	t.Helper()
	host := handlerstest.Serve(t, d)
	address := host + "/policies/import"
	response, page := handlerstest.Post(t, address, url.Values{"text": {text}, "action": {"read"}})
	if response.StatusCode == http.StatusSeeOther { // to the address with the text
		_, page = handlerstest.Get(t, host+response.Header.Get("Location"))
	}
	if page.Find("#action-form").Length() == 0 { // what is no table, or cannot be read whole, is listed first
		if page.Find("button[value=review-many]").Length() != 1 {
			t.Fatalf("the teams cannot be reviewed together: %s", handlerstest.Text(page.Find("main")))
		}
		_, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#import-form"), "action", "review-many"))
	}
	htmlcheck.Page(t, page)
	review = handlerstest.Text(page.Find("main"))
	if between != nil {
		between()
	}
	form := handlerstest.ValuesIn(page, "#action-form")
	form.Set("reason", "reorganization")
	response, _ = handlerstest.Post(t, address, form)
	if response.StatusCode != http.StatusSeeOther {
		t.Fatalf("the save answers %s", response.Status)
	}
	to := host + response.Header.Get("Location")
	handlerstest.EventsUntil(t, to+"/events", func(html string) bool { return strings.Contains(html, "All ") || strings.Contains(html, " done, ") })
	_, page = handlerstest.Get(t, to)
	htmlcheck.Page(t, page)
	return review, handlerstest.Text(page.Find("#bulk"))
}

// Fifty teams of a spreadsheet take one review and one save.
func TestFiftyTeams(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	table := "team\tmembers\tml.g6.12xlarge\n"
	for i := range 50 {
		table += fmt.Sprintf("team-%d\tgroup-%d\t1\n", i, i)
	}
	review, outcome := saveAll(t, d, table, nil)
	for _, want := range []string{"Save 50 teams", "50 new.", "ml.g6.12xlarge: Over capacity: teams would be allocated 6 times the 8 GPUs of this pool", "team-0 New ml.g6.12xlarge: 1 GPU"} {
		if !strings.Contains(review, want) {
			t.Errorf("the review: got %q, want %q", review, want)
		}
	}
	if !strings.Contains(outcome, "All 50.") {
		t.Errorf("the outcome: got %q", outcome)
	}
	names := map[string]bool{}
	for _, a := range d.Created {
		names[a.Name] = true
		if *a.Spec.Quota[0].Accelerators != 1 || a.Spec.Quota[0].InstanceType != "ml.g6.12xlarge" || a.Spec.Members[0].Name != strings.Replace(a.Name, "team", "group", 1) || a.Annotations[v1alpha1.AnnotationReason] != "reorganization" {
			t.Fatalf("created %+v", a)
		}
	}
	if len(names) != 50 {
		t.Errorf("created %d teams", len(names))
	}
}

// Teams that exist keep what the table does not name. What is wrong with one team, and what was
// changed since the review, is said and keeps no other from being saved.
func TestTeamsOfATable(t *testing.T) {
	speech, audio := handlerstest.FullAllocation(), handlerstest.FullAllocation()
	speech.Name, speech.UID, audio.Name, audio.UID = "speech", "s", "audio", "a"
	d := handlerstest.WithAllocations(handlerstest.FullAllocation(), speech, audio)
	table := "team,weight,h100\nvision,40,8\nspeech,30,4\naudio,50,4\nfresh,1,2\nWrong Name,1,2\n"
	review, outcome := saveAll(t, d, table, func() {
		d.Change("audio", func(a *v1alpha1.ComputeAllocation) { a.Spec.Description = "theirs" })
	})
	for _, want := range []string{"1 new, 2 changed, 1 unchanged, 1 not saved.", "Fair-share weight: 30 → 40", "Wrong Name Not saved"} {
		if !strings.Contains(review, want) {
			t.Errorf("the review: got %q, want %q", review, want)
		}
	}
	if !strings.Contains(outcome, "2 done, 1 not.") || !strings.Contains(outcome, "audio Not done It was changed since the review.") {
		t.Errorf("the outcome: got %q", outcome)
	}
	if len(d.Updated) != 1 || d.Updated[0].Name != "vision" || d.Updated[0].Spec.FairShareWeight != 40 || len(d.Updated[0].Spec.Windows) != 2 || d.Updated[0].Spec.Namespace != "research" {
		t.Fatalf("updated %+v", d.Updated)
	}
	rows := d.Updated[0].Spec.Quota
	if i := slices.IndexFunc(rows, func(r v1alpha1.QuotaRow) bool { return r.Pool == "h100" }); len(rows) != 4 || i < 0 || *rows[i].Accelerators != 8 {
		t.Errorf("the quota is %+v", rows)
	}
	if len(d.Created) != 1 || d.Created[0].Name != "fresh" {
		t.Errorf("created %+v", d.Created)
	}
}

// The heading of a pool can be the model of its accelerators. A heading that means nothing is said
// once, and keeps the text.
func TestHeadings(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + "/policies/import"
	for heading, want := range map[string]string{
		"H100": "fresh New h100: 1 GPU", "l4": "fresh New ml.g6.12xlarge: 1 GPU", "l4 instances": "fresh New ml.g6.12xlarge: 4 GPUs", "ml.g6.12xlarge": "fresh New ml.g6.12xlarge: 1 GPU", "wieght": `heading "wieght": is neither a column nor a pool. The pools are`,
	} {
		text := "team," + heading + "\nfresh,1\nvision,8\n"
		_, page := handlerstest.Post(t, address, url.Values{"text": {text}, "action": {"review-many"}})
		if got := handlerstest.Text(page.Find("main")); strings.Count(got, want) == 0 {
			t.Errorf("%s: got %q, want %q", heading, got, want)
		}
		if heading == "wieght" && page.Find("textarea").Text() != text {
			t.Errorf("the text is %q now", page.Find("textarea").Text())
		}
	}
}

// A text without a valid new or changed team saves nothing, and the way back has it.
func TestNothingToSave(t *testing.T) {
	d := handlerstest.WithAllocations(handlerstest.FullAllocation())
	address := handlerstest.Serve(t, d) + "/policies/import"
	_, page := handlerstest.Post(t, address, url.Values{"text": {"team,weight\nvision,30\nUp,1\naudio,ten\n"}, "action": {"review-many"}})
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, "No team of this text can be saved") || !strings.Contains(text, `audio Not saved weight: is "ten"`) || page.Find("#action-form").Length() != 0 {
		t.Errorf("got %q", text)
	}
	_, page = handlerstest.Post(t, address, handlerstest.ValuesIn(page, "#action-back"))
	if text := page.Find("textarea").Text(); text != "team,weight\nvision,30\nUp,1\naudio,ten\n" {
		t.Errorf("the text is %q after the way back", text)
	}
}
