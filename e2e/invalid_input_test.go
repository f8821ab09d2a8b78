package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// filledForm returns the values of a form that can be saved.
func filledForm(team string) url.Values {
	return url.Values{
		"action": {"save"}, "request-id": {clustertest.Name("request")}, "team": {team}, "weight": {"10"},
		"display-name": {"kept as typed"}, "description": {"<b>this too</b>"},
		"strategy": {"LendAndBorrow"}, "borrow-percent": {"50"}, "preemption": {"LowerPriority"},
		"row-0-type": {"ml.g5.2xlarge"}, "row-0-accelerators": {"1"},
		"row-0-instances": {""}, "row-0-vcpu": {""}, "row-0-memory": {""},
	}
}

// post submits the form as the admin, and returns the status and the page of the
// response.
func post(t *testing.T, values url.Values) (int, *goquery.Document) {
	t.Helper()
	return postTo(t, user(t, console(t), "admin"), console(t), values)
}

// postTo is post with a client and a console. It follows the redirect to a form with
// errors.
func postTo(t *testing.T, client *http.Client, address string, values url.Values) (int, *goquery.Document) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address+"/policies/allocations/new", strings.NewReader(values.Encode()))
	must(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, page := send(t, noRedirect(client), request)
	if location := response.Header.Get("Location"); strings.Contains(location, "?form=") { // the form with its errors has its own address
		request, err = http.NewRequest(http.MethodGet, address+location, nil)
		must(t, err)
		response, page = send(t, noRedirect(client), request)
	}
	return response.StatusCode, page
}

// TestInvalidInput checks that each invalid value has an error at its field and in
// the summary, that the form keeps what was typed, and that nothing is saved.
func TestInvalidInput(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	taken, foreign := clustertest.Name("taken"), clustertest.Name("foreign")
	deleteTeamAtEnd(t, taken)
	must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: taken}}))
	must(t, c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hyperpod-ns-" + foreign}}))
	queued := clustertest.Name("queued")
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error { // another test may be restarting Kueue
		return c.Client.Create(ctx, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "hyperpod-ns-" + queued + "-clusterqueue"}})
	})

	sixteen := map[string]string{}
	for i := range 16 {
		sixteen[fmt.Sprintf("row-%d-type", i)] = []string{"ml.g5.2xlarge", "ml.c5.large", "ml.c5.xlarge", "ml.c5.2xlarge", "ml.c5.4xlarge", "ml.c5.9xlarge", "ml.c5.12xlarge", "ml.c5.18xlarge", "ml.c5.24xlarge", "ml.m5.large", "ml.m5.xlarge", "ml.m5.2xlarge", "ml.m5.4xlarge", "ml.m5.12xlarge", "ml.m5.16xlarge", "ml.m5.24xlarge"}[i]
		sixteen[fmt.Sprintf("row-%d-vcpu", i)] = "1"
	}
	cases := map[string]struct {
		typed map[string]string
		field string // the input that the error belongs to
		want  string
	}{
		"an empty name":               {map[string]string{"team": ""}, "team", "nter a team name"},
		"an overlong name":            {map[string]string{"team": strings.Repeat("a", 41)}, "team", "at most 40"},
		"upper case":                  {map[string]string{"team": "Vision"}, "team", "lower-case"},
		"a team that exists":          {map[string]string{"team": taken}, "team", "already has an allocation"},
		"an unmanaged namespace":      {map[string]string{"team": foreign}, "team", "amespace hyperpod-ns-" + foreign + " already exists"},
		"an unmanaged ClusterQueue":   {map[string]string{"team": queued}, "team", "is not managed by Kuota"},
		"-1":                          {map[string]string{"row-0-accelerators": "-1"}, "row-0-accelerators", "negative"},
		"-1 vCPU":                     {map[string]string{"row-0-vcpu": "-1"}, "row-0-vcpu", "negative"},
		"a row of zeros":              {map[string]string{"row-0-accelerators": "0", "row-0-vcpu": "0", "row-0-memory": "0"}, "row-0-accelerators", "at least one amount above 0"},
		"a row without amounts":       {map[string]string{"row-0-accelerators": ""}, "row-0", "at least one amount above 0"},
		"1e400":                       {map[string]string{"row-0-vcpu": "1e400"}, "row-0-vcpu", "Not a number"},
		"1e400 GiB":                   {map[string]string{"row-0-memory": "1e400"}, "row-0-memory", "Not a number"},
		"NaN":                         {map[string]string{"row-0-memory": "NaN"}, "row-0-memory", "Not a number"},
		"NaN accelerators":            {map[string]string{"row-0-accelerators": "NaN"}, "row-0-accelerators", "Not a number"},
		"9223372036854775808":         {map[string]string{"row-0-accelerators": "9223372036854775808"}, "row-0-accelerators", "Too large"},
		"9223372036854775808 vCPU":    {map[string]string{"row-0-vcpu": "9223372036854775808"}, "row-0-vcpu", "Too large"},
		"0.5 accelerators":            {map[string]string{"row-0-accelerators": "0.5"}, "row-0-accelerators", "whole"},
		"1Ki vCPU":                    {map[string]string{"row-0-vcpu": "1Ki"}, "row-0-vcpu", "without a unit"},
		"vCPU in ten-thousandths":     {map[string]string{"row-0-vcpu": "0.0005"}, "row-0-vcpu", "steps of 0.001"},
		"Arabic digits":               {map[string]string{"row-0-vcpu": "٤٨"}, "row-0-vcpu", "Not a number"},
		"instances with vCPU":         {map[string]string{"row-0-accelerators": "", "row-0-instances": "1", "row-0-vcpu": "2"}, "row-0-instances", "not both"},
		"an unknown instance type":    {map[string]string{"row-0-type": "ml.g5.2xlrage"}, "row-0-type", "did you mean ml.g5.2xlarge"},
		"no instance type":            {map[string]string{"row-0-type": ""}, "row-0-type", "Name an instance type"},
		"the same type twice":         {map[string]string{"row-1-type": "ml.g5.2xlarge", "row-1-vcpu": "1"}, "row-1-type", "is already in row 1"},
		"sixteen rows":                {sixteen, "", "at most 15"},
		"no row at all":               {map[string]string{"row-0-type": "", "row-0-accelerators": ""}, "", "at least one pool"},
		"a borrow limit of 10001":     {map[string]string{"borrow-percent": "10001"}, "borrow-percent", "0 to 10,000"},
		"a weight of 101":             {map[string]string{"weight": "101"}, "weight", "0 to 100"},
		"an unknown strategy":         {map[string]string{"strategy": "Steal"}, "strategy", "Choose one"},
		"a display name of two lines": {map[string]string{"display-name": "a\u0085b"}, "display-name", "line breaks"},
		"accelerators of a CPU type":  {map[string]string{"row-0-type": "ml.c5.2xlarge"}, "row-0-accelerators", "have no accelerators"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			team := clustertest.Name("bad")
			values := filledForm(team)
			for input, text := range tc.typed {
				values.Set(input, text)
			}
			status, page := post(t, values)
			if status != http.StatusUnprocessableEntity {
				t.Errorf("got status %d, want 422", status)
			}
			if summary := page.Find("#form-errors").Text(); !strings.Contains(strings.ToLower(summary), strings.ToLower(tc.want)) {
				t.Errorf("summary: got %q, want it to contain %q", summary, tc.want)
			}
			if tc.field != "" {
				if got := errorOf(page, tc.field); !strings.Contains(got, tc.want) {
					t.Errorf("error of %s: got %q, want it to contain %q", tc.field, got, tc.want)
				}
				if link := page.Find(`#form-errors a[href="#` + tc.field + `"]`); link.Length() == 0 {
					t.Errorf("summary: got no link to %s, want one", tc.field)
				}
			}
			for input, typed := range values {
				if input == "action" || input == "request-id" || input == "strategy" || input == "preemption" {
					continue
				}
				if got := page.Find("#"+input).AttrOr("value", "(no such input)"); got != typed[0] {
					t.Errorf("%s: got %q, want %q", input, got, typed[0])
				}
			}
			if got := page.Find(`input[name="request-id"]`).AttrOr("value", ""); got != values.Get("request-id") {
				t.Errorf("request-id: got %q, want %q", got, values.Get("request-id"))
			}
			if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{}); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("get the allocation: got %v, want not found", err)
			}
		})
	}
}

// errorOf returns the error text of an input that is marked as invalid. For a row or
// a group it returns the text of the element itself.
func errorOf(page *goquery.Document, id string) string {
	input := page.Find("#" + id)
	if input.Is("[aria-invalid=true]") {
		text := ""
		for _, ref := range strings.Fields(input.AttrOr("aria-describedby", "")) {
			text += page.Find("#"+ref).Text() + " "
		}
		return text
	}
	if input.Is("input") {
		return "nothing: the input is not marked as invalid"
	}
	return input.Text()
}

// TestFormAndConditionAgree checks values that the API server accepts but the cluster
// state makes invalid: the condition Ready has the message of the form, and the
// controller creates no ClusterQueue.
func TestFormAndConditionAgree(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	foreign := clustertest.Name("theirs")
	must(t, c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hyperpod-ns-" + foreign}}))
	for name, tc := range map[string]struct{ team, instanceType, field string }{
		"an unknown type":        {clustertest.Name("same"), "ml.g5.2xlrage", "row-0-type"},
		"an unmanaged namespace": {foreign, "ml.g5.2xlarge", "team"},
	} {
		t.Run(name, func(t *testing.T) {
			values := filledForm(tc.team)
			values.Set("row-0-type", tc.instanceType)
			_, page := post(t, values)
			summary := page.Find(`#form-errors a[href="#` + tc.field + `"]`).First().Text()
			_, sentence, _ := strings.Cut(summary, ": ")
			if len(sentence) < 20 {
				t.Fatalf("summary: got %q, want a sentence of at least 20 characters", summary)
			}
			deleteTeamAtEnd(t, tc.team)
			one := int64(1)
			must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{
				ObjectMeta: metav1.ObjectMeta{Name: tc.team},
				Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: tc.instanceType, Quantities: v1alpha1.Quantities{Accelerators: &one}}}},
			}))
			clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
				var a v1alpha1.ComputeAllocation
				if err := c.Client.Get(ctx, client.ObjectKey{Name: tc.team}, &a); err != nil {
					return err
				}
				ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady)
				if ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, strings.TrimSpace(sentence)) {
					return fmt.Errorf("condition Ready: got %+v, want False with %q", ready, sentence)
				}
				return nil
			})
			err := c.Client.Get(t.Context(), client.ObjectKey{Name: "hyperpod-ns-" + tc.team + "-clusterqueue"}, &kueue.ClusterQueue{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("get the ClusterQueue: got %v, want not found", err)
			}
		})
	}
}
