package allocations_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"kuota.dev/kuota/handlers/handlerstest"

	"github.com/PuerkitoBio/goquery"
)

// Whatever is posted to the form is answered with the form, or saved and led
// on from; and what was typed is what the form shows.
func FuzzAllocationForm(f *testing.F) {
	for _, seed := range [][3]string{
		{"vision", "Vision team", handlerstest.AllocationForm().Encode()},
		{"vision", "Vision team", handlerstest.AllocationForm("row-0-vcpu", "48", "row-1-type", "ml.c5.2xlarge", "row-1-memory", "0.5").Encode()},
		{"", "", ""}, {" vision ", "<script>alert(1)</script>", "row-0-type=%3Cscript%3E"}, {"Ünïcode", "\"'&lt;", "weight=-1"}, {"a b", "line\nbreak", "weight=9223372036854775808&borrow-percent=1e400"},
		{"\x00", "\xff\xfe", "row-0-vcpu=NaN&row-0-memory=Inf"}, {strings.Repeat("a", 254), strings.Repeat("é", 200), "row-0-type=ml.g6.12xlarge&row-0-instances=99999999999999999999"},
		{"a", "b", "row-0-accelerators=.5&row-0-vcpu=5.&row-0-memory=1_000&row-0-type=ml.g6.12xlarge"}, {"a", "b", "row-99999999999999999999-type=x&row--1-type=x&row-0-type-type=x&row-0-=x&row-="},
		{"a", "b", "action=remove-row:0&action=remove-row:-1&submitted=true"}, {"a", "b", "strategy=Lend&preemption=&request-id=%00"}, {"a", "b", "%zz=%"}, {"a", "b", ";&;"},
		{"a", "b", "row-0-type=ml.g6.12xlarge&row-0-vcpu=٣&row-0-memory=１"}, {"a", "b", "row-0-type=ml.g6.12xlarge&row-0-memory=" + strings.Repeat("9", 5000)},
		{"a", "b", "member-0-name=system:x&member-0-kind=Robot&member-9999999-name=y&namespace=kube-x&activation=Fly&ceiling=true&unlimited=true&version=1&generation=x"},
		{"a", "b", "limit-0-type=ml.g5.2xlarge&limit-0-vcpu=-1&limit-3-type=H100&row-0-type=ml.p4d.24xlarge&row-0-profile=mig-1g.5gb&row-0-count=99999999999&action=make-pool:limit-1"},
		{"a", "b", "new-pool-0-name=x&new-pool-0-kind=accelerator&new-pool-0-value=L4&row-0-type=x&row-0-accelerators=1&new-pool-1-name=x&new-pool-2-name=ml.g6.12xlarge&new-pool-2-kind=instanceFamily&new-pool-2-value=."},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, team, name, rest string) {
		address := handlerstest.Serve(t, &handlerstest.Backend{}) + handlerstest.NewURL
		for _, action := range []string{"preview", "save", "add-row", "remove-row:0", "reset:row-0-vcpu", rest} {
			body := url.Values{"team": {team}, "display-name": {name}, "action": {action}}.Encode() + "&" + rest
			response, err := handlerstest.Client.Post(address, "application/x-www-form-urlencoded", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			page, err := goquery.NewDocumentFromReader(response.Body)
			response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			switch _, unreadable := url.ParseQuery(body); {
			case unreadable != nil:
				if response.StatusCode != http.StatusBadRequest {
					t.Errorf("%q, which cannot be read, answers %s", body, response.Status)
				}
				continue
			case action == "save" && response.StatusCode == http.StatusSeeOther:
				if got := response.Header.Get("Location"); got != "/policies?created="+url.QueryEscape(strings.TrimSpace(team)) {
					t.Errorf("%q leads to %q", body, got)
				}
				continue
			case action == "save" && response.StatusCode != http.StatusUnprocessableEntity, action != "save" && response.StatusCode != http.StatusOK:
				t.Errorf("%q answers %s: %s", body, response.Status, page.Find("main").Text())
				continue
			}
			for id, typed := range map[string]string{"team": strings.TrimSpace(team), "display-name": name} {
				if !utf8.ValidString(typed) || strings.ContainsAny(typed, "\x00\r") {
					continue // HTML cannot hold it
				}
				if got, there := page.Find("#" + id).Attr("value"); got != typed || !there && typed != "" {
					t.Errorf("%q: %s shows %q, typed was %q", body, id, got, typed)
				}
			}
			if page.Find("#allocation-form").Length() != 1 || page.Find("script").Length() != 2 {
				t.Errorf("%q is answered with %d forms and %d scripts", body, page.Find("#allocation-form").Length(), page.Find("script").Length())
			}
		}
	})
}
