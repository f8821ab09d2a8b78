package policy_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Saving a form unchanged keeps all fields, also those that the form does not show.
func TestPolicySavedUntouchedIsTheSame(t *testing.T) {
	for path, up := range map[string]string{handlerstest.PolicyURL: "/policies", handlerstest.PoolsURL: "/instances", handlerstest.PricesURL: "/usage", handlerstest.AlertsURL: "/alerts"} {
		t.Run(path, func(t *testing.T) {
			d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
			address := handlerstest.Serve(t, d) + path
			response, page := handlerstest.Get(t, address)
			if response.StatusCode != http.StatusOK {
				t.Fatal(response.Status)
			}
			htmlcheck.Page(t, page)
			response, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "review"))
			if response.StatusCode != http.StatusOK || page.Find("#policy-review").Length() != 1 {
				t.Fatalf("the review answers %s: %s", response.Status, page.Find("main").Text())
			}
			htmlcheck.Page(t, page)
			response, _ = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-review"), "action", "save"))
			if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != up+"?unchanged=true" {
				t.Fatalf("the save answers %s to %s", response.Status, response.Header.Get("Location"))
			}
			if len(d.PolicyBackend.Saved) != 1 || !reflect.DeepEqual(d.PolicyBackend.Saved[0], *handlerstest.RankedPolicy()) || !reflect.DeepEqual(d.PolicyBackend.Reviewed[0], *handlerstest.RankedPolicy()) {
				t.Errorf("saved is %+v", d.PolicyBackend.Saved)
			}
		})
	}
}

// The form of one part is no conflict with a save of another, which it keeps.
func TestPartsAreNoConflict(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
	address := handlerstest.Serve(t, d)
	_, prices := handlerstest.Get(t, address+handlerstest.PricesURL)
	mine := handlerstest.WithValues(handlerstest.ValuesIn(prices, "#policy-form"), "price-0-own", "4", "action", "save")
	now := handlerstest.RankedPolicy()
	now.ResourceVersion, now.Generation, now.Spec.Enforcement = "8", 4, v1alpha1.RequireQueue
	d.PolicyBackend.Policy = now
	if response, _ := handlerstest.Post(t, address+handlerstest.PricesURL, mine); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %s", response.Status)
	}
	saved := d.PolicyBackend.Saved[0].Spec
	if saved.Prices.Hourly[0].Own != "4" || saved.Enforcement != v1alpha1.RequireQueue {
		t.Errorf("saved is %+v", saved)
	}
	now.Spec.Prices.Currency = "USD"
	now.ResourceVersion = "9"
	if response, _ := handlerstest.Post(t, address+handlerstest.PricesURL, mine); response.StatusCode != http.StatusConflict {
		t.Errorf("over other prices: got %s", response.Status)
	}
}

// A part of the policy needs a policy.
func TestPartsWithoutAPolicy(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d)
	for _, path := range []string{handlerstest.PoolsURL, handlerstest.PricesURL, handlerstest.AlertsURL} {
		_, page := handlerstest.Get(t, address+path)
		htmlcheck.Page(t, page)
		if page.Find(`main a[href="`+handlerstest.PolicyURL+`"]`).Length() != 1 || page.Find("#policy-form").Length() != 0 {
			t.Errorf("%s shows %q", path, handlerstest.Text(page.Find("main")))
		}
		if handlerstest.Post(t, address+path, url.Values{"action": {"save"}, "price-currency": {"EUR"}}); len(d.PolicyBackend.Saved) != 0 {
			t.Fatal("a policy was created")
		}
	}
}

// What a form names and does not exist is said at its row and in the review, and can be saved.
func TestPolicyWarnings(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), Secrets: []string{"alerts-ops"}, ReviewResult: policy.Review{Warnings: []governance.FieldError{
		{Path: "spec.alerts.receivers[1].secretName", Message: "there is no Secret smtp in the namespace of the console: nothing can be sent"},
	}}}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+handlerstest.AlertsURL)
	for id, want := range map[string]string{"#receiver-0": "", "#receiver-1": "There is no Secret smtp in the namespace of the console: nothing can be sent. There is no team vision."} {
		if got := handlerstest.Text(page.Find(id + " .policy-notes > .hint")); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
	_, page = handlerstest.Post(t, address+handlerstest.AlertsURL, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "review"))
	if got := handlerstest.Text(page.Find(".notice-warn")); !strings.Contains(got, "There is no Secret smtp") || !strings.Contains(got, "Receiver 2, Secret:") {
		t.Errorf("the review: got %q", got)
	}
	_, page = handlerstest.Get(t, address+handlerstest.PricesURL)
	if got := handlerstest.Text(page.Find("#price-0 .policy-notes")); got != "" { // h100 is a pool of the policy
		t.Errorf("prices: got %q", got)
	}
	values := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "preview", "price-0-pool", "h101")
	_, page = handlerstest.Post(t, address+handlerstest.PricesURL, values, "X-Requested-With", "fetch")
	if got := handlerstest.Text(page.Find("#price-0 .policy-notes")); got != "There is no pool h101 now." {
		t.Errorf("prices: got %q", got)
	}
}

// A new policy changes only what the form sets.
func TestNewPolicyHasDefaults(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
	_, page := handlerstest.Get(t, address)
	if response, page := handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "save")); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
	}
	got := d.PolicyBackend.Saved[0]
	five := &metav1.Duration{Duration: 5 * time.Minute}
	want := v1alpha1.ClusterPolicySpec{
		TaskPrioritization: v1alpha1.FirstComeFirstServe,
		IdleCompute:        v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare},
		GangScheduling: v1alpha1.GangScheduling{Timeout: five, RecoveryTimeout: five, Requeuing: v1alpha1.Requeuing{
			Timestamp: "Eviction", BackoffBaseSeconds: new(int32(60)), BackoffMaxSeconds: new(int32(3600))}},
		PreemptionLoops: v1alpha1.BreakLoops, Enforcement: v1alpha1.RequireQueue,
	}
	if got.Name != "default" || got.ResourceVersion != "" || !reflect.DeepEqual(got.Spec, want) {
		t.Errorf("saved is %+v", got)
	}
}

// Each small action changes what it says, and nothing else that was typed.
func TestPolicyFormActions(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), Tasks: map[string]int{"training": 12, "": 3}}}
	host := handlerstest.Serve(t, d)
	for _, tc := range []struct {
		path, action string
		want         map[string]string
	}{
		{handlerstest.PolicyURL, "preview", map[string]string{"#class-0-name": "half typed", "#class-1-name": "inference"}},
		{handlerstest.PolicyURL, "back", map[string]string{"#class-0-name": "half typed"}},
		{handlerstest.PolicyURL, "add-class", map[string]string{"#class-0-name": "half typed", "#class-2-name": ""}},
		{handlerstest.PolicyURL, "remove-class:0", map[string]string{"#class-0-name": "inference", "#class-0-description": "Serves users"}},
		{handlerstest.PoolsURL, "preview", map[string]string{"#pool-3-value": "not a label"}},
		{handlerstest.PoolsURL, "add-pool", map[string]string{"#pool-3-value": "not a label", "#pool-4-name": ""}},
		{handlerstest.PoolsURL, "remove-pool:1", map[string]string{"#pool-0-name": "h100", "#pool-1-name": "cpu", "#pool-2-value": "not a label"}},
		{handlerstest.PoolsURL, "remove-pool:99", map[string]string{"#pool-3-value": "not a label"}},
		{handlerstest.PoolsURL, "add-over", map[string]string{"#over-0-percent": "20", "#over-1-percent": "0", "#over-2-percent": ""}},
		{handlerstest.PoolsURL, "remove-over:0", map[string]string{"#over-0-percent": "0"}},
		{handlerstest.PricesURL, "add-price", map[string]string{"#price-0-own": "2.50", "#price-2-own": ""}},
		{handlerstest.PricesURL, "remove-price:0", map[string]string{"#price-0-own": "3", "#price-0-from": "2026-10-01T12:00:00Z"}},
		{handlerstest.AlertsURL, "add-rule", map[string]string{"#rule-15-limit": "10m", "#rule-16-limit": ""}},
		{handlerstest.AlertsURL, "remove-rule:0", map[string]string{"#rule-15-limit": "10m"}},
		{handlerstest.AlertsURL, "add-receiver", map[string]string{"#receiver-1-to": "vision@example.com", "#receiver-2-name": ""}},
		{handlerstest.AlertsURL, "remove-receiver:0", map[string]string{"#receiver-0-name": "vision"}},
	} {
		t.Run(tc.path+" "+tc.action, func(t *testing.T) {
			_, page := handlerstest.Get(t, host+tc.path)
			base := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", tc.action)
			for id, text := range map[string]string{"class-0-name": "half typed", "pool-3-value": "not a label"} {
				if base.Has(id) {
					base.Set(id, text)
				}
			}
			response, page := handlerstest.Post(t, host+tc.path, base, "X-Requested-With", "fetch")
			if response.StatusCode != http.StatusOK || page.Find("header.top").Length() != 0 {
				t.Errorf("got %s", response.Status)
			}
			for id, text := range tc.want {
				if got, there := page.Find(id).Attr("value"); !there || got != text {
					t.Errorf("%s shows %q, want %q", id, got, text)
				}
			}
			if got := page.Find("[name=resource-version]").AttrOr("value", ""); got != "7" {
				t.Errorf("the version is %q", got)
			}
		})
	}
	_, page := handlerstest.Get(t, host+handlerstest.PolicyURL)
	for id, want := range map[string]string{"#class-0": "12 tasks", ".policy-classless": "3 tasks", "#class-1": "Time limit: 1h30m by default, at most 2h", "#more-settings summary": "gang scheduling, usage of shares, preemption loops are only reported, no queue required"} {
		if text := page.Find(id).Text(); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", id, text, want)
		}
	}
	_, page = handlerstest.Get(t, host+handlerstest.PoolsURL)
	for id, want := range map[string]string{"#pool-0": "2 nodes now", "#pool-1": "No node now"} {
		if text := page.Find(id).Text(); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", id, text, want)
		}
	}
}

// An invalid value has an error at its input and is kept.
func TestPolicyFormErrors(t *testing.T) {
	for name, tc := range map[string]struct{ id, text, want string }{
		"a time without unit":      {"gang-timeout", "300", "Has no unit"},
		"a time that is none":      {"gang-timeout", "soon", "Not a time"},
		"no time at all":           {"gang-timeout", "0s", "No pod is ready at once"},
		"a negative time":          {"gang-recovery", "-5m", "negative"},
		"half a second":            {"gang-recovery", "1.5s", "whole seconds"},
		"an endless time":          {"gang-recovery", "99999999999h", "Not a time"},
		"tries that are no number": {"requeue-limit", "often", "Not a number"},
		"too long a pause":         {"requeue-most", "99999999999", "Too large"},
		"a negative pause":         {"requeue-base", "-1", "negative"},
		"no half-life":             {"usage-half-life", "0s", "Kueue ignores usage"},
		"a resource without value": {"usage-weights", "nvidia.com/gpu", "Not a list of resources"},
		"a resource twice":         {"usage-weights", "cpu=1, cpu=2", "Names cpu twice"},
		"a heavy resource":         {"usage-weights", "cpu=1001", "too large"},
		"a currency by its name":   {"price-currency", "Euro", "three capital letters"},
		"no currency":              {"price-currency", "", "three capital letters"},
		"a price of no pool":       {"price-0-pool", "", "Choose a pool"},
		"a price of no resource":   {"price-0-resource", "", "Choose a resource"},
		"a price from some time":   {"price-1-from", "2026-02-30", "Write the beginning"},
		"a price with a comma":     {"price-0-own", "2,50", "Write prices as 2.50"},
		"only a borrowed price":    {"price-0-own", "", "Give the price of an hour"},
		"a count of a time":        {"rule-0-limit", "5", "Has no unit"},
		"a time for a count":       {"rule-4-limit", "5m", "Not a number"},
		"an alert after no time":   {"rule-0-limit", "0s", "from 1s"},
		"a class that is none":     {"rule-15-class", "", "Choose a priority class"},
		"a class without time":     {"rule-15-limit", "", "Give a time"},
		"a receiver by fax":        {"receiver-0-type", "Fax", "it must be Webhook, Slack, Teams or Email"},
		"mail to no address":       {"receiver-1-to", "ops", "looks like ops@example.com"},
		"a receiver without name":  {"receiver-0-name", "", "Give the receiver a name"},
		"a receiver twice":         {"receiver-1-name", "ops", "listed twice"},
		"a receiver with no door":  {"receiver-0-secret", "", "Name the Secret"},
		"a weight above 100":       {"class-0-weight", "101", "Too large"},
		"half a weight":            {"class-0-weight", "1.5", "whole"},
		"a class without weight":   {"class-0-weight", "", "Give a weight"},
		"a class without name":     {"class-0-name", "", "Give the class a name"},
		"a limit without unit":     {"class-0-limit", "300", "Has no unit"},
		"a limit of no time":       {"class-0-longest", "0s", "from 1"},
		"a limit of two years":     {"class-0-longest", "17520h", "8760h"},
		"a default above the most": {"class-1-limit", "3h", "default time limit is longer"},
		"a long description":       {"class-0-description", strings.Repeat("x", 1025), "more than 1,024"},
		"a pool without name":      {"pool-0-name", "", "Give the pool a name"},
		"a pool without nodes":     {"pool-0-value", "", "Say which nodes"},
		"half of a percent":        {"over-0-percent", "1.5", "whole"},
		"a limit without percent":  {"over-1-percent", "", "Give a percentage"},
		"more than 1,000 percent":  {"over-0-percent", "1001", "1,000"},
		"a limit of a pool twice":  {"over-1-pool", "*", "twice"},
		"a resource without name":  {"resource-0-name", "", "Name a resource"},
		"no word for a resource":   {"resource-1-label", "", "Give the word"},
		"vCPU as a resource":       {"resource-1-name", "cpu", "without being listed"},
		"a resource listed twice":  {"resource-1-name", "google.com/tpu", "twice"},
		"labels that are none":     {"pool-3-value", "zone", "key=value"},
		"a label twice":            {"pool-3-value", "zone=a, zone=b", "zone twice"},
		"no type among commas":     {"pool-2-value", " , ", "Names no instance type"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
			address := handlerstest.Serve(t, d) + pageOf(tc.id)
			_, page := handlerstest.Get(t, address)
			for _, action := range []string{"review", "save"} {
				response, wrong := handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", action, tc.id, tc.text))
				if response.StatusCode != http.StatusUnprocessableEntity {
					t.Fatalf("%s answers %s", action, response.Status)
				}
				htmlcheck.Page(t, wrong)
				input := wrong.Find("#" + tc.id)
				if kept := cmp.Or(input.AttrOr("value", ""), input.Find("[selected]").AttrOr("value", "")); input.AttrOr("aria-invalid", "") != "true" || kept != strings.TrimSpace(tc.text) {
					t.Errorf("the input is %q, and invalid: %q", kept, input.AttrOr("aria-invalid", ""))
				}
				if text := wrong.Find("#" + tc.id + "-error").Text(); !strings.Contains(text, tc.want) {
					t.Errorf("the error is %q", text)
				}
				if wrong.Find("#form-errors a[href='#"+tc.id+"']").Length() != 1 || wrong.Find("[aria-invalid]").Length() != 1 {
					t.Errorf("the summary is %q", wrong.Find("#form-errors").Text())
				}
			}
			if len(d.PolicyBackend.Saved)+len(d.PolicyBackend.Reviewed) != 0 {
				t.Error("it was taken further")
			}
		})
	}
}

// pageOf returns the page that has an input.
func pageOf(id string) string {
	kind, _, _ := strings.Cut(id, "-")
	return cmp.Or(map[string]string{"pool": handlerstest.PoolsURL, "over": handlerstest.PoolsURL, "resource": handlerstest.PoolsURL, "price": handlerstest.PricesURL, "rule": handlerstest.AlertsURL, "receiver": handlerstest.AlertsURL}[kind], handlerstest.PolicyURL)
}

// Errors of the backend are shown at the row of the form, though the spec has no
// empty rows.
func TestBackendErrorsAreShownAtTheirInputs(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), WriteError: &governance.Error{Kind: governance.Invalid, Message: "Look again.", Fields: []governance.FieldError{
		{Path: "spec.priorityClasses[1].name", Message: "is listed twice"},
		{Path: "spec.pools[0].match", Message: "team vision has quota in pool h100: move it first"},
		{Path: "spec.pools", Message: "team vision has quota in pool old: move it first"},
		{Path: "spec.gangScheduling.requeuing.backoffBaseSeconds", Message: "is longer than the longest pause"},
		{Path: "metadata.labels", Message: "is nothing that this form shows"},
	}}}}
	address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
	_, page := handlerstest.Get(t, address)
	values := handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "review", "class-0-name", "", "class-0-weight", "", "class-0-description", "",
		"class-2-name", "last", "class-2-weight", "1")
	response, page := handlerstest.Post(t, address, values)
	if response.StatusCode != http.StatusUnprocessableEntity {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	for id, want := range map[string]string{
		"class-2-name": "Is listed twice.", "requeue-base": "longest pause",
	} {
		if text := page.Find("#" + id + "-error").Text(); !strings.Contains(text, want) {
			t.Errorf("the error at %s is %q", id, text)
		}
	}
	links := page.Find("#form-errors a").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("href", "") })
	if !slices.Equal(links, []string{"#class-2-name", "#requeue-base"}) {
		t.Errorf("the summary links to %v", links)
	}
	for _, want := range []string{"Is nothing that this form shows", "vision has quota in pool h100: move it first", "vision has quota in pool old: move it first"} {
		if text := page.Find("#form-errors").Text(); !strings.Contains(text, want) {
			t.Errorf("the summary is %q, want %q", text, want)
		}
	}
}

// Incomplete values are no errors before a save was tried.
func TestIncompletePolicyHasNoErrorsWhileTyping(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
	host := handlerstest.Serve(t, d)
	for path, empty := range map[string][]string{
		handlerstest.PolicyURL: {"class-0-weight", "", "class-1-name", ""}, handlerstest.PoolsURL: {"pool-0-value", "", "pool-1-name", ""},
		handlerstest.PricesURL: {"price-0-own", "", "price-1-pool", ""}, handlerstest.AlertsURL: {"rule-15-limit", "", "receiver-0-secret", "", "receiver-1-name", ""},
	} {
		_, page := handlerstest.Get(t, host+path)
		_, page = handlerstest.Post(t, host+path, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), append(empty, "action", "preview")...), "X-Requested-With", "fetch")
		if wrong := page.Find("[aria-invalid=true]"); wrong.Length() != 0 || page.Find("#form-errors").Length() != 0 {
			t.Errorf("%s: %s is marked wrong: %s", path, wrong.AttrOr("id", "something"), page.Find(".error").Text())
		}
	}
}

// Values are validated before a review was tried.
func TestPolicyIsCheckedWhileTyping(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy()}}
	host := handlerstest.Serve(t, d)
	for id, tc := range map[string]struct{ text, want string }{
		"class-0-name": {"Up", "lower-case"},
		"pool-0-name":  {"ml.p5.48xlarge", " ml.p5.48xlarge is an instance type"}, "pool-1-name": {"h100", "twice"}, "requeue-most": {"1", "smaller than"},
		"pool-3-value": {"a b=c", "not a valid node label"},
	} {
		address := host + pageOf(id)
		_, page := handlerstest.Get(t, address)
		_, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-form"), "action", "preview", id, tc.text), "X-Requested-With", "fetch")
		if text := page.Find("#" + id + "-error").Text(); !strings.Contains(text, tc.want) || page.Find("[aria-invalid]").Length() != 1 {
			t.Errorf("%s in %s: the error is %q", tc.text, id, text)
		}
	}
}

// Each kind of error has its HTTP status and keeps the typed values.
func TestPolicyErrorsHaveTheirStatus(t *testing.T) {
	for kind, want := range map[governance.Kind]int{
		governance.Forbidden: http.StatusForbidden, governance.Unavailable: http.StatusServiceUnavailable, governance.Internal: http.StatusInternalServerError,
	} {
		trouble := &governance.Error{Kind: kind, Message: "In a person's words.", Err: fmt.Errorf("dial tcp 10.0.0.7")}
		for name, d := range map[string]*handlerstest.Backend{
			"a refusal": {PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), WriteError: trouble}},
			"an outage": {PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), StateError: trouble}},
		} {
			address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
			response, page := handlerstest.Post(t, address, url.Values{"action": {"save"}, "resource-version": {"7"}, "prioritization": {"TaskRanking"}, "idle": {"FairShare"},
				"enforcement": {"None"}, "requeue-order": {"Eviction"}, "class-0-name": {"kept"}, "class-0-weight": {"5"}})
			if response.StatusCode != want || !strings.Contains(page.Text(), "In a person's words.") || strings.Contains(page.Text(), "10.0.0.7") {
				t.Errorf("%s of kind %d answers %s: %s", name, kind, response.Status, page.Find("main").Text())
			}
			htmlcheck.Page(t, page)
			form := kind == governance.Unavailable || kind == governance.Forbidden && name == "a refusal"
			if form && page.Find("#class-0-name").AttrOr("value", "") != "kept" {
				t.Errorf("%s of kind %d loses what was typed", name, kind)
			}
		}
	}
}

// The card has the time limits of classes, and whether anything sets and checks them.
func TestTimeLimitsOnTheCard(t *testing.T) {
	for name, tc := range map[string]struct {
		enforcement v1alpha1.Enforcement
		noMutation  bool
		want        string // of the text about enforcement; empty for nothing about time limits
	}{
		"set and checked": {v1alpha1.RequireQueue, false, ""},
		"only checked":    {v1alpha1.RequireQueue, true, "Time limits are only checked"},
		"not enforced":    {v1alpha1.EnforcementNone, false, "Time limits of classes have no effect."},
	} {
		t.Run(name, func(t *testing.T) {
			ranked := handlerstest.RankedPolicy()
			ranked.Spec.Enforcement = tc.enforcement
			_, page := handlerstest.Get(t, handlerstest.Serve(t, &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: ranked, NoMutation: tc.noMutation}})+"/policies")
			if text := page.Find("#policy-prioritization").Text(); !strings.Contains(text, "Time limit: 1h30m by default, at most 2h.") {
				t.Errorf("the classes are %q", text)
			}
			text := page.Find("#policy-enforcement").Text()
			if !strings.Contains(text, tc.want) || tc.want == "" && strings.Contains(text, "Time limits") {
				t.Errorf("enforcement is %q, want %q", text, tc.want)
			}
		})
	}
}

// A reader without permission gets no form of the policy and no link to it.
func TestPolicyForReaders(t *testing.T) {
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), Reader: true}}
	address := handlerstest.Serve(t, d)
	if response, _ := handlerstest.Get(t, address+handlerstest.PolicyURL); response.StatusCode != http.StatusNotFound {
		t.Errorf("the form answers %s", response.Status)
	}
	if response, _ := handlerstest.Post(t, address+handlerstest.PolicyURL, url.Values{"action": {"save"}}); response.StatusCode != http.StatusNotFound || len(d.PolicyBackend.Saved) != 0 {
		t.Errorf("a save answers %s", response.Status)
	}
	_, page := handlerstest.Get(t, address+"/policies")
	if page.Find("#cluster-policy").Length() != 1 || page.Find(`a[href="`+handlerstest.PolicyURL+`"]`).Length() != 0 {
		t.Error("a reader has no card, or a way to change it")
	}
}

// No posted values cause an internal error.
func TestOddPolicyPosts(t *testing.T) {
	address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.PolicyURL
	many := url.Values{"action": {"review"}}
	for i := range 1000 {
		many.Set(fmt.Sprintf("class-%d-name", i), fmt.Sprint("c", i))
		many.Set(fmt.Sprintf("pool-%d-name", i), fmt.Sprint("p", i))
		many.Add("drop", fmt.Sprint("d", i))
	}
	for _, values := range []url.Values{
		{}, many, {"action": {"\x00"}}, {"action": {"remove-class:-1"}}, {"action": {"remove-pool:"}}, {"class-99999999999999999999-name": {"x"}}, {"class--1-name": {"x"}},
		{"class-0-#": {"x"}, "class-0": {"x"}, "pool-0-name-x": {"y"}}, {"action": {"review"}, "prioritization": {"<b>"}, "idle": {""}, "enforcement": {"x"}, "requeue-order": {"x"}},
		{"pool-0-match": {"x"}, "pool-0-value": {"y"}, "action": {"save"}}, {"gang-timeout": {strings.Repeat("9", 100_000)}},
	} {
		response, page := handlerstest.Post(t, address, values)
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%.80v answers %s", values, response.Status)
		}
		if page.Find("script").Length() != 2 || page.Find(".policy-row").Length() > 170 {
			t.Errorf("%.80v makes a page of %d rows", values, page.Find(".policy-row").Length())
		}
		htmlcheck.Page(t, page)
	}
}

// Admins make Kuota try again what another writer changed back. Others see why, and no
// button.
func TestTryAgain(t *testing.T) {
	p := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}, Status: v1alpha1.ClusterPolicyStatus{
		Kueue:      &v1alpha1.KueueStatus{Patch: "fairSharing: {}"},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFairShare, Status: metav1.ConditionFalse, Reason: "Reverted", Message: "another writer, kueue-operator, changed Kueue's configuration back after 2 attempts"}},
	}}
	d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: p}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/policies")
	htmlcheck.Page(t, page)
	if text := handlerstest.Text(page.Find("#policy-patch")); !strings.Contains(text, "Another writer, kueue-operator, changed Kueue's configuration back after 2 attempts. Apply the changes below in Kueue's namespace, or let Kuota try again.") {
		t.Errorf("got %q", text)
	}
	to := address + page.Find("#policy-try-again").AttrOr("action", "")
	if response, _ := handlerstest.Post(t, to, handlerstest.ValuesIn(page, "#policy-try-again")); response.StatusCode != http.StatusSeeOther || d.PolicyBackend.TriedAgain != 1 {
		t.Errorf("got %s, tried again %d times", response.Status, d.PolicyBackend.TriedAgain)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/api/v1/policy/try-again", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := handlerstest.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || d.PolicyBackend.TriedAgain != 2 {
		t.Errorf("by the API: %s, tried again %d times", response.Status, d.PolicyBackend.TriedAgain)
	}
	for reason, reader := range map[string]bool{"Reverted": true, "ManagedElsewhere": false} {
		p.Status.Conditions[0].Reason, d.PolicyBackend.Reader = reason, reader
		if _, page := handlerstest.Get(t, address+"/policies"); page.Find("#policy-try-again").Length() != 0 {
			t.Errorf("%s: a user can try again; only a reader: %t", reason, reader)
		}
	}
}
