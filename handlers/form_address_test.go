package handlers_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/views/htmlcheck"
)

// direct posts a form and follows no redirect.
func direct(t *testing.T, address string, form url.Values) (status int, location string) {
	t.Helper()
	staying := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := staying.PostForm(address, form)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode, response.Header.Get("Location")
}

// Whatever a form is answered with has an address that shows the same again.
func TestFormsAreAnsweredAtAnAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		path, selector, action string
		change                 []string // of what the form has
		failure                error    // of the domain
		at, shows              string   // selector on the page
		status                 int
	}{
		"review":            {path: editURL, selector: "#allocation-form", action: "review", change: []string{"weight", "77"}, at: editURL + "/review", shows: "#review-form input[name=weight][value='77']", status: http.StatusOK},
		"invalid":           {path: editURL, selector: "#allocation-form", action: "review", change: []string{"weight", "1000"}, at: editURL, shows: "#form-errors, #weight[value='1000'][aria-invalid]", status: http.StatusUnprocessableEntity},
		"one more row":      {path: editURL, selector: "#allocation-form", action: "add-row", at: editURL, shows: "#row-4-type", status: http.StatusOK},
		"back":              {path: editURL, selector: "#allocation-form", action: "back", change: []string{"reason", "why not"}, at: editURL, shows: "input[name=reason][value='why not']", status: http.StatusOK},
		"refused save":      {path: editURL, selector: "#allocation-form", action: "save", change: []string{"weight", "77"}, failure: &governance.Error{Kind: governance.Invalid, Message: "No.", Fields: []governance.FieldError{{Path: "spec.fairShareWeight", Message: "not today"}}}, at: editURL, shows: "#weight[value='77'][aria-invalid]", status: http.StatusUnprocessableEntity},
		"policy review":     {path: policyURL, selector: "#policy-form", action: "review", change: []string{"class-0-weight", "1"}, at: policyURL + "/review", shows: "#policy-review input[name=class-0-weight][value='1']", status: http.StatusOK},
		"invalid policy":    {path: policyURL, selector: "#policy-form", action: "review", change: []string{"class-0-weight", "1000"}, at: policyURL, shows: "#class-0-weight[aria-invalid]", status: http.StatusUnprocessableEntity},
		"one more class":    {path: policyURL, selector: "#policy-form", action: "add-class", at: policyURL, shows: "#class-2-name", status: http.StatusOK},
		"unconfirmed":       {path: "/policies/allocations/vision/delete", selector: "#delete-form", action: "delete", change: []string{"confirm", "visio", "reason", "unused"}, at: "/policies/allocations/vision/delete", shows: "#confirm[value=visio][aria-invalid], #reason[value=unused]", status: http.StatusUnprocessableEntity},
		"unreadable import": {path: "/policies/import", selector: "#import-form", action: "read", change: []string{"text", "no object"}, at: "/policies/import", shows: "#text[aria-invalid]", status: http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			d := allocated(everything())
			d.policies.policy = ranked()
			address := serve(t, d)
			_, page := get(t, address+tc.path)
			d.refusal = tc.failure
			status, location := direct(t, address+tc.path, with(typedIn(page, tc.selector), append(tc.change, "action", tc.action)...))
			if at, _, ok := strings.Cut(location, "?form="); status != http.StatusSeeOther || !ok || at != tc.at {
				t.Fatalf("the form is answered with %d at %s, want %s", status, location, tc.at)
			}
			for range 2 { // loaded again
				response, page := get(t, address+location)
				htmlcheck.Page(t, page)
				if response.StatusCode != tc.status || page.Find(tc.shows).Length() != len(strings.Split(tc.shows, ", ")) {
					t.Errorf("%s answers %s without %s: %s", tc.at, response.Status, tc.shows, said(page.Find("main")))
				}
			}
			if len(d.updated)+len(d.created)+len(d.deleted) != 0 {
				t.Errorf("showing an address wrote: updated %v, created %v, deleted %v", d.updated, d.created, d.deleted)
			}
		})
	}
}

// An address holds a form of fifteen rows and thirty members, also with the
// 180 bytes that sealing adds.
func TestHowMuchAnAddressHolds(t *testing.T) {
	address := serve(t, allocated(everything()))
	values := form("action", "back", "description", "Trains and serves the models of the vision group, on their own nodes.")
	for i := range 15 {
		values.Set(fmt.Sprintf("row-%d-type", i), fmt.Sprintf("ml.p5en.%dxlarge", i*12))
		values.Set(fmt.Sprintf("row-%d-accelerators", i), fmt.Sprint(i*7+3))
		for _, part := range []string{"instances", "vcpu", "memory", "profile", "count"} {
			values.Set(fmt.Sprintf("row-%d-%s", i, part), "")
		}
	}
	for i := range 30 {
		values.Set(fmt.Sprintf("member-%d-kind", i), "User")
		values.Set(fmt.Sprintf("member-%d-name", i), fmt.Sprintf("oidc:%x@example.com", 9973*(i+7)*(i+11)))
	}
	status, location := direct(t, address+newURL, values)
	_, packed, _ := strings.Cut(location, "?form=")
	if status != http.StatusSeeOther || len(packed) > 1720 {
		t.Errorf("the form is answered with %d and %d bytes", status, len(packed))
	}
}

// What an address has that this console did not put there is not shown.
func TestAddressesWithOtherValues(t *testing.T) {
	address := serve(t, allocated(everything()))
	for path, leads := range map[string]string{
		editURL + "/review":                    editURL,
		editURL + "/review?form=nonsense":      editURL + "?form=lost",
		newURL + "/review":                     newURL,
		policyURL + "/review":                  policyURL,
		"/policies/cluster/edit/review?form=x": policyURL + "?form=lost",
	} {
		staying := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := staying.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != leads {
			t.Errorf("%s answers %s to %s, want %s", path, response.Status, response.Header.Get("Location"), leads)
		}
	}
	_, page := get(t, address+editURL+"?form=lost")
	if text := said(page.Find("main")); !strings.Contains(text, "cannot be shown") || page.Find("#weight").AttrOr("value", "") != "30" {
		t.Errorf("the form says %s", text)
	}
}
