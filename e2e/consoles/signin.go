package consoles

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// AdminBinding is the manifest that makes the user admin of the local cluster an
// admin of Kuota.
const AdminBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: kuota-admins}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: kuota-admins}]}`

// SignIn signs the admin in at one replica. Cookies do not depend on the port, so
// that the session is used at the other replica too.
func SignIn(t testing.TB, r *Replica) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	client := &http.Client{Jar: jar, Timeout: 10 * time.Second}
	response, page := load(t, client, http.MethodGet, r.Address+"/policies?signed-in", nil)
	for range 5 {
		if strings.HasPrefix(response.Request.URL.String(), r.Address) {
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

func load(t testing.TB, client *http.Client, method, address string, values url.Values) (*http.Response, *goquery.Document) {
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
