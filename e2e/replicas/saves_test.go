package replicas_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
)

const adminBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: kuota-admins}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: kuota-admins}]}`

// signIn signs the admin in at one replica. Cookies do not depend on the port, so
// that the session is used at the other replica too.
func signIn(t *testing.T, r *replica) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	client := &http.Client{Jar: jar, Timeout: 10 * time.Second}
	response, page := load(t, client, http.MethodGet, r.address+"/policies?signed-in", nil)
	for range 5 {
		if strings.HasPrefix(response.Request.URL.String(), r.address) {
			return client
		}
		values := url.Values{}
		form := page.Find("form").First()
		form.Find("input[name], button[name]").Each(func(_ int, input *goquery.Selection) {
			values.Set(input.AttrOr("name", ""), input.AttrOr("value", ""))
		})
		for input, value := range map[string]string{"username": "admin", "login": "admin", "password": "kuota-admin"} {
			if values.Has(input) {
				values.Set(input, value)
			}
		}
		action, err := response.Request.URL.Parse(form.AttrOr("action", ""))
		must(t, err)
		response, page = load(t, client, http.MethodPost, action.String(), values)
	}
	t.Fatalf("sign in: got address %s with %s", response.Request.URL, response.Status)
	return nil
}

func load(t *testing.T, client *http.Client, method, address string, values url.Values) (*http.Response, *goquery.Document) {
	t.Helper()
	request, err := http.NewRequest(method, address, strings.NewReader(values.Encode()))
	must(t, err)
	request.Header.Set("Accept", "text/html")
	if values != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	must(t, err)
	return response, page
}

// saver saves new allocations in the form of the console, like an admin who repeats
// a save that was not answered.
type saver struct {
	client   *http.Client
	replicas []*replica

	mu    sync.Mutex
	saved []string // teams whose save was confirmed
}

// run saves until ctx ends, each time at the next replica. It completes a save that
// it began.
func (s *saver) run(ctx context.Context, t *testing.T) {
	for i := 0; ctx.Err() == nil; i++ {
		team := clustertest.Name("saved")
		values := url.Values{
			"action": {"save"}, "request-id": {clustertest.Name("request")}, "team": {team}, "weight": {"10"}, "display-name": {""}, "description": {""},
			"strategy": {"LendAndBorrow"}, "borrow-percent": {"50"}, "preemption": {"LowerPriority"},
			"row-0-type": {"ml.g5.2xlarge"}, "row-0-accelerators": {"1"}, "row-0-instances": {""}, "row-0-vcpu": {""}, "row-0-memory": {""},
		}
		var err error
		for try, began := 0, time.Now(); ; try++ {
			if err = s.save(s.replicas[(i+try)%len(s.replicas)], values); err == nil {
				break
			}
			if time.Since(began) > patience {
				t.Errorf("save of %s: %v", team, err)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		s.mu.Lock()
		s.saved = append(s.saved, team)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (s *saver) save(r *replica, values url.Values) error {
	client := *s.client
	client.Timeout = 3 * time.Second
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	request, err := http.NewRequest(http.MethodPost, r.address+"/policies/allocations/new", strings.NewReader(values.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if location := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || !strings.Contains(location, "created=") {
		return fmt.Errorf("%s, to %q", response.Status, location)
	}
	return nil
}
