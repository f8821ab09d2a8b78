package policy_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/handlers/handlerstest"

	"github.com/PuerkitoBio/goquery"
)

// Whatever is posted to the policy's form is answered with the form, a review,
// or a save; what was typed is what the form shows, and what a review holds
// leads back to it.
func FuzzPolicyForm(f *testing.F) {
	for _, seed := range [][4]string{
		{"training", "60", "5m", "prioritization=TaskRanking&idle=FairShare&enforcement=None&requeue-order=Eviction"},
		{"a", "0", "1h30m", "prioritization=FirstComeFirstServe&idle=FirstComeFirstServe&enforcement=RequireQueue&requeue-order=Creation&gang=true&pool-0-name=h&pool-0-match=labels&pool-0-value=a%3Db%2Cc"},
		{"Up", "101", "5", ""}, {"", "", "", ""}, {" x ", "-1", "-5m", "drop=a&drop=b&resource-version=9"}, {"<script>", "1e2", "1e9h", "class-1-name=%3Cscript%3E"},
		{"x", "٣", "5µs", "pool-0-match=types&pool-0-value=%2C%2C&pool-0-name=x"}, {"x-priority", "1", "9999999h", "class-1-name=x&class-1-weight=1"},
		{"\x00", "\xff\xfe", "\r\n", "%zz"}, {strings.Repeat("a", 300), strings.Repeat("9", 300), strings.Repeat("1h", 300), "class-99999999999999999999-name=x&class--1-name=x&class-0-name-x=y&pool-=x"},
		{"x", "1", "5m", "requeue-base=99999999999&requeue-most=1&requeue-limit=x&gang-recovery=0s&action=remove-class:0&submitted=true"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, name, weight, timeout, rest string) {
		d := &handlerstest.Backend{PolicyBackend: handlerstest.PolicyBackend{Policy: handlerstest.RankedPolicy(), ReviewResult: policy.Review{Classes: []policy.ClassChange{{Name: "inference", Before: new(int32(1)), Tasks: 2}}}}}
		address := handlerstest.Serve(t, d) + handlerstest.PolicyURL
		for _, action := range []string{"preview", "review", "save", "add-class", "remove-class:0", "back"} {
			body := url.Values{"resource-version": {"7"}, "class-0-name": {name}, "class-0-weight": {weight}, "gang-timeout": {timeout}, "action": {action}}.Encode() + "&" + rest
			response, err := handlerstest.Client.Post(address, "application/x-www-form-urlencoded", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			page, err := goquery.NewDocumentFromReader(response.Body)
			response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if _, unreadable := url.ParseQuery(body); unreadable != nil {
				if response.StatusCode != http.StatusBadRequest {
					t.Errorf("%q, which cannot be read, answers %s", body, response.Status)
				}
				continue
			}
			if page.Find("script").Length() != 2 && response.StatusCode != http.StatusSeeOther {
				t.Errorf("%q is answered with %d scripts", body, page.Find("script").Length())
			}
			switch review := page.Find("#policy-review").Length() == 1; {
			case response.StatusCode == http.StatusSeeOther && action == "save" && len(d.PolicyBackend.Saved) > 0:
				continue
			case response.StatusCode == http.StatusOK && review && action == "review":
				_, page = handlerstest.Post(t, address, handlerstest.WithValues(handlerstest.ValuesIn(page, "#policy-review"), "action", "back"))
			case response.StatusCode == http.StatusOK && action != "save" && action != "review":
			case response.StatusCode == http.StatusUnprocessableEntity && (action == "save" || action == "review"):
			default:
				t.Errorf("%q answers %s: %s", body, response.Status, page.Find("main").Text())
				continue
			}
			if page.Find("#policy-form").Length() != 1 {
				t.Fatalf("%q is not answered with the form", body)
			}
			if action == "remove-class:0" {
				continue
			}
			for id, text := range map[string]string{"class-0-name": name, "class-0-weight": weight, "gang-timeout": timeout} {
				text = strings.TrimSpace(text)
				if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r") {
					continue // HTML cannot hold it
				}
				if got := page.Find("#"+id).AttrOr("value", ""); got != text {
					t.Errorf("%q: %s shows %q, typed was %q", body, id, got, text)
				}
			}
		}
	})
}
