package forms_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/handlerstest"
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

// Each answer to a form redirects to an address that shows it again.
func TestFormsAreAnsweredAtAnAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		path, selector, action string
		change                 []string // of what the form has
		failure                error    // of the domain
		Ptr, shows             string   // selector on the page
		status                 int
	}{
		"review":            {path: handlerstest.EditURL, selector: "#allocation-form", action: "review", change: []string{"weight", "77"}, Ptr: handlerstest.EditURL + "/review", shows: "#review-form input[name=weight][value='77']", status: http.StatusOK},
		"invalid":           {path: handlerstest.EditURL, selector: "#allocation-form", action: "review", change: []string{"weight", "1000"}, Ptr: handlerstest.EditURL, shows: "#form-errors, #weight[value='1000'][aria-invalid]", status: http.StatusUnprocessableEntity},
		"one more row":      {path: handlerstest.EditURL, selector: "#allocation-form", action: "add-row", Ptr: handlerstest.EditURL, shows: "#row-4-type", status: http.StatusOK},
		"back":              {path: handlerstest.EditURL, selector: "#allocation-form", action: "back", change: []string{"reason", "why not"}, Ptr: handlerstest.EditURL, shows: "input[name=reason][value='why not']", status: http.StatusOK},
		"refused save":      {path: handlerstest.EditURL, selector: "#allocation-form", action: "save", change: []string{"weight", "77"}, failure: &governance.Error{Kind: governance.Invalid, Message: "No.", Fields: []governance.FieldError{{Path: "spec.fairShareWeight", Message: "not today"}}}, Ptr: handlerstest.EditURL, shows: "#weight[value='77'][aria-invalid]", status: http.StatusUnprocessableEntity},
		"policy review":     {path: handlerstest.PolicyURL, selector: "#policy-form", action: "review", change: []string{"class-0-weight", "1"}, Ptr: handlerstest.PolicyURL + "/review", shows: "#policy-review input[name=class-0-weight][value='1']", status: http.StatusOK},
		"invalid policy":    {path: handlerstest.PolicyURL, selector: "#policy-form", action: "review", change: []string{"class-0-weight", "1000"}, Ptr: handlerstest.PolicyURL, shows: "#class-0-weight[aria-invalid]", status: http.StatusUnprocessableEntity},
		"one more class":    {path: handlerstest.PolicyURL, selector: "#policy-form", action: "add-class", Ptr: handlerstest.PolicyURL, shows: "#class-2-name", status: http.StatusOK},
		"unconfirmed":       {path: "/policies/allocations/vision/delete", selector: "#delete-form", action: "delete", change: []string{"confirm", "visio", "reason", "unused"}, Ptr: "/policies/allocations/vision/delete", shows: "#confirm[value=visio][aria-invalid], #reason[value=unused]", status: http.StatusUnprocessableEntity},
		"unreadable import": {path: "/policies/import", selector: "#import-form", action: "read", change: []string{"text", "no object"}, Ptr: "/policies/import", shows: "#text[aria-invalid]", status: http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			d := handlerstest.WithAllocations(handlerstest.FullAllocation())
			d.PolicyBackend.Policy = handlerstest.RankedPolicy()
			address := handlerstest.Serve(t, d)
			_, page := handlerstest.Get(t, address+tc.path)
			d.WriteError = tc.failure
			status, location := direct(t, address+tc.path, handlerstest.WithValues(handlerstest.ValuesIn(page, tc.selector), append(tc.change, "action", tc.action)...))
			if at, _, ok := strings.Cut(location, "?form="); status != http.StatusSeeOther || !ok || at != tc.Ptr {
				t.Fatalf("the form is answered with %d at %s, want %s", status, location, tc.Ptr)
			}
			for range 2 { // loaded again
				response, page := handlerstest.Get(t, address+location)
				htmlcheck.Page(t, page)
				if response.StatusCode != tc.status || page.Find(tc.shows).Length() != len(strings.Split(tc.shows, ", ")) {
					t.Errorf("%s answers %s without %s: %s", tc.Ptr, response.Status, tc.shows, handlerstest.Text(page.Find("main")))
				}
			}
			if len(d.Updated)+len(d.Created)+len(d.Deletions) != 0 {
				t.Errorf("showing an address wrote: updated %v, created %v, deleted %v", d.Updated, d.Created, d.Deletions)
			}
		})
	}
}

// An address holds a form of fifteen rows and thirty members, also with the
// 180 bytes that sealing adds.
func TestAddressFitsALargeForm(t *testing.T) {
	address := handlerstest.Serve(t, handlerstest.WithAllocations(handlerstest.FullAllocation()))
	values := handlerstest.AllocationForm("action", "back", "description", "Trains and serves the models of the vision group, on their own nodes.")
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
	status, location := direct(t, address+handlerstest.NewURL, values)
	_, packed, _ := strings.Cut(location, "?form=")
	if status != http.StatusSeeOther || len(packed) > 1720 {
		t.Errorf("the form is answered with %d and %d bytes", status, len(packed))
	}
}

// Values in an address that this console did not seal are not shown.
func TestAddressesWithOtherValues(t *testing.T) {
	address := handlerstest.Serve(t, handlerstest.WithAllocations(handlerstest.FullAllocation()))
	for path, leads := range map[string]string{
		handlerstest.EditURL + "/review":               handlerstest.EditURL,
		handlerstest.EditURL + "/review?form=nonsense": handlerstest.EditURL + "?form=lost",
		handlerstest.NewURL + "/review":                handlerstest.NewURL,
		handlerstest.PolicyURL + "/review":             handlerstest.PolicyURL,
		"/policies/cluster/edit/review?form=x":         handlerstest.PolicyURL + "?form=lost",
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
	_, page := handlerstest.Get(t, address+handlerstest.EditURL+"?form=lost")
	if text := handlerstest.Text(page.Find("main")); !strings.Contains(text, "cannot be shown") || page.Find("#weight").AttrOr("value", "") != "30" {
		t.Errorf("the form shows %s", text)
	}
}
