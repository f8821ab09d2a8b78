package e2e_test

import (
	"cmp"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
	"github.com/playwright-community/playwright-go"
)

// adminBinding binds the sample provider's admin group to the role of an admin.
const adminBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kuota-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: kuota-admins}]
`

// memberBinding returns a RoleBinding that makes a group members of a team.
func memberBinding(team, group string) string {
	return strings.NewReplacer("TEAM", team, "GROUP", group).Replace(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kuota-members, namespace: hyperpod-ns-TEAM}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: GROUP}]
`)
}

// signInEnv returns the environment of a console as localcluster configures it: with
// the console's own account in the cluster, and the sample provider.
func signInEnv(c *clustertest.Cluster) []string {
	file := func(name string) string { return filepath.Join(c.Dir, "signin", name) }
	issuer, err := os.ReadFile(file("issuer"))
	if err != nil {
		panic(err)
	}
	return []string{
		"KUBECONFIG=" + filepath.Join(c.Dir, "kubeconfigs", "kuota"),
		"KUOTA_OIDC_ISSUER=" + strings.TrimSpace(string(issuer)),
		"KUOTA_OIDC_CLIENT_ID=kuota",
		"KUOTA_OIDC_CLIENT_SECRET_FILE=" + file("client-secret"),
		"KUOTA_SESSION_KEYS_FILE=" + file("session-keys"),
		"KUOTA_OIDC_COMMAND_LINE_CLIENT_ID=kuota-cli",
		"KUOTA_OIDC_USERNAME_CLAIM=email",
		"KUOTA_OIDC_GROUPS_CLAIM=groups",
	}
}

// signedIn has the clients that are signed in over HTTP, by console and name.
var signedIn sync.Map

// user returns a client that is signed in at a console. All tests share the session of
// a user; tests that end a session use newUser.
func user(t testing.TB, console, name string) *http.Client {
	t.Helper()
	if client, ok := signedIn.Load(console + " " + name); ok {
		return client.(*http.Client)
	}
	client := newUser(t, console, name)
	signedIn.Store(console+" "+name, client)
	return client
}

// newUser signs a user in over HTTP, through the provider's own pages, and returns the
// client.
func newUser(t testing.TB, console, name string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	client := &http.Client{Jar: jar}
	openSignedIn(t, client, console, "/policies?signed-in", name)
	return client
}

// openSignedIn opens an address of a console and signs in as name if the provider asks
// for it. It fails the test unless it ends at that address.
func openSignedIn(t testing.TB, client *http.Client, console, path, name string) (*http.Response, *goquery.Document) {
	t.Helper()
	response, page := load(t, client, console+path)
	for range 5 {
		if strings.HasPrefix(response.Request.URL.String(), console) {
			break
		}
		response, page = submitSignIn(t, client, response, page, name)
	}
	if got := response.Request.URL.String(); got != console+path {
		t.Fatalf("sign in as %s: got address %s with %s, want %s: %s", name, got, response.Status, console+path, page.Find("main").Text())
	}
	return response, page
}

// submitSignIn submits the form of a provider's page. Providers name the inputs
// differently.
func submitSignIn(t testing.TB, client *http.Client, response *http.Response, page *goquery.Document, name string) (*http.Response, *goquery.Document) {
	t.Helper()
	values := url.Values{}
	form := page.Find("form").First()
	form.Find("input[name], button[name]").Each(func(_ int, input *goquery.Selection) {
		values.Set(input.AttrOr("name", ""), input.AttrOr("value", ""))
	})
	for input, value := range map[string]string{"username": name, "login": name, "password": "kuota-" + name} {
		if values.Has(input) {
			values.Set(input, value)
		}
	}
	action, err := response.Request.URL.Parse(form.AttrOr("action", ""))
	must(t, err)
	request, err := http.NewRequest(http.MethodPost, action.String(), strings.NewReader(values.Encode()))
	must(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(t, client, request)
}

// load requests a page like a browser does, and returns the response and the page.
func load(t testing.TB, client *http.Client, address string) (*http.Response, *goquery.Document) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	must(t, err)
	return send(t, client, request)
}

// send sends a request that accepts HTML, and returns the response and the page.
func send(t testing.TB, client *http.Client, request *http.Request) (*http.Response, *goquery.Document) {
	t.Helper()
	request.Header.Set("Accept", "text/html")
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	must(t, err)
	return response, page
}

// fetch requests an address, and returns the status and the body.
func fetch(t testing.TB, client *http.Client, address string) (int, string) {
	t.Helper()
	response, err := client.Get(address)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}

// cookiesOf returns the session cookie of a client at a console, for a browser.
func cookiesOf(t testing.TB, client *http.Client, console string) []playwright.OptionalCookie {
	t.Helper()
	address, err := url.Parse(console)
	must(t, err)
	var cookies []playwright.OptionalCookie
	for _, cookie := range client.Jar.Cookies(address) {
		if cookie.Name == "kuota" {
			cookies = append(cookies, playwright.OptionalCookie{
				Name: cookie.Name, Value: cookie.Value, Domain: playwright.String(address.Hostname()), Path: playwright.String(cmp.Or(base, "/")),
				HttpOnly: playwright.Bool(true), SameSite: playwright.SameSiteAttributeLax,
			})
		}
	}
	if len(cookies) != 1 {
		t.Fatalf("got %d session cookies, want 1", len(cookies))
	}
	return cookies
}

// noRedirect returns a copy of client that does not follow redirects.
func noRedirect(client *http.Client) *http.Client {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &direct
}
