package consoles

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

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

// Token signs a person of the sample provider in as kuota login does, and returns the ID token.
func Token(t testing.TB, c *clustertest.Cluster, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "signin", "issuer"))
	must(t, err)
	issuer := strings.TrimSpace(string(text))
	post := func(path string, values url.Values, into any) {
		t.Helper()
		response, err := http.PostForm(issuer+path, values)
		must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must(t, err)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %.300s", path, response.Status, body)
		}
		if into != nil {
			must(t, json.Unmarshal(body, into))
		}
	}
	var device, token map[string]any
	post("/device_authorization", url.Values{"client_id": {"kuota-cli"}, "scope": {"openid profile email groups"}}, &device)
	post("/device", url.Values{"user_code": {fmt.Sprint(device["user_code"])}, "username": {name}, "password": {"kuota-" + name}}, nil)
	post("/oauth/token", url.Values{"client_id": {"kuota-cli"}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {fmt.Sprint(device["device_code"])}}, &token)
	return fmt.Sprint(token["id_token"])
}
