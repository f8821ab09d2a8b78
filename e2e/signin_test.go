package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSignIn runs the same scenarios against the sample provider and against npm's
// oidc-provider, which returns groups only from the userinfo endpoint.
func TestSignIn(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t) // creates the admin's binding
	for name, env := range map[string]func(*testing.T) []string{
		"the sample provider": func(*testing.T) []string { return signInEnv(c) },
		"npm's oidc-provider": func(t *testing.T) []string {
			return oidcProvider(t, map[string][]string{"admin": {"kuota-admins"}, "ada": {"vision-team"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := env(t)
			one := replica(t, "signin-one-"+strings.Fields(name)[0], configuration...)
			two := replica(t, "signin-two-"+strings.Fields(name)[0], configuration...)
			must(t, waitReady(one))
			must(t, waitReady(two))
			t.Run("sign in and out", func(t *testing.T) { testSignInAndOut(t, one, two) })
			t.Run("session expires before a save", func(t *testing.T) { testExpiryBeforeSave(t, one) })
			t.Run("concurrent users", func(t *testing.T) { testConcurrentUsers(t, one) })
		})
	}
}

// testSignInAndOut signs in and out, and checks that both replicas reject the cookie of
// the ended session.
func testSignInAndOut(t *testing.T, one, two string) {
	admin := newUser(t, one, "admin")
	cookie := sessionCookie(t, admin, one)
	for _, address := range []string{one, two} {
		if status, body := withCookie(t, address+"/policies", cookie); status != http.StatusOK || !strings.Contains(body, "admin@example.com") {
			t.Fatalf("%s for a signed-in user: got status %d, want 200", address, status)
		}
	}
	response, err := admin.PostForm(one+"/auth/logout", nil)
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("sign out: got %s, want 200", response.Status)
	}
	if status, _ := withCookie(t, one+"/policies", cookie); status != http.StatusSeeOther {
		t.Errorf("cookie of the ended session: got status %d, want 303", status)
	}
	// The other replica receives the deletion through its watch.
	clustertest.Eventually(t, time.Second, func(context.Context) error {
		if status, _ := withCookie(t, two+"/policies", cookie); status != http.StatusSeeOther {
			return fmt.Errorf("other replica: got status %d, want 303", status)
		}
		return nil
	})
}

// testExpiryBeforeSave ends the session between filling in a form and saving it, and
// checks that the form keeps its values.
func testExpiryBeforeSave(t *testing.T, address string) {
	c := clustertest.Get(t)
	admin := newUser(t, address, "admin")
	team := clustertest.Name("expired")
	deleteTeamAtEnd(t, team)
	expire(t, admin, address)
	status, page := postTo(t, admin, address, filledForm(team))
	if status != http.StatusUnauthorized || !strings.Contains(page.Text(), "nothing was saved") {
		t.Fatalf("save without a session: got status %d, want 401: %s", status, page.Find("main").Text())
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("get the allocation: got %v, want not found", err)
	}
	_, next, _ := strings.Cut(page.Find("meta[http-equiv=refresh]").AttrOr("content", ""), "url=")
	if _, err := url.Parse(next); next == "" || err != nil {
		t.Fatalf("refresh of the page: got address %q, want one", next)
	}
	response, page := load(t, admin, address+strings.TrimPrefix(next, base))
	for range 3 { // the provider's session may still be active
		if strings.HasPrefix(response.Request.URL.String(), address) {
			break
		}
		response, page = submitSignIn(t, admin, response, page, "admin")
	}
	for input, want := range map[string]string{"team": team, "row-0-type": "ml.g5.2xlarge", "row-0-accelerators": "1", "display-name": "kept as typed", "weight": "10"} {
		if got := page.Find("#"+input).AttrOr("value", ""); got != want {
			t.Errorf("restored form, %s: got %q, want %q", input, got, want)
		}
	}
	if !strings.Contains(page.Text(), "review them and save again") {
		t.Errorf("restored form: got no explanation, want one")
	}
	if status, page := postTo(t, admin, address, filledForm(team)); status != http.StatusSeeOther {
		t.Errorf("save of the restored form: got status %d, want 303: %s", status, page.Find("#form-errors").Text())
	}
}

// testConcurrentUsers sends requests of two users at once, and checks that neither gets
// a page of the other.
func testConcurrentUsers(t *testing.T, address string) {
	var requests sync.WaitGroup
	for _, name := range []string{"admin", "ada"} {
		client := newUser(t, address, name)
		requests.Go(func() {
			for range 40 {
				_, body := fetch(t, client, address+"/policies")
				for other := range map[string]bool{"admin": true, "ada": true} {
					if strings.Contains(body, other+"@example.com") != (other == name) {
						t.Errorf("%s: got a page of another user, want their own", name)
						return
					}
				}
			}
		})
	}
	requests.Wait()
}

// sessionCookie returns the session cookie of a client at a console.
func sessionCookie(t *testing.T, client *http.Client, console string) *http.Cookie {
	t.Helper()
	cookies := cookiesOf(t, client, console)
	return &http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value}
}

// withCookie requests an address with a cookie, and returns the status and the text of
// the page. It follows no redirects.
func withCookie(t *testing.T, address string, cookie *http.Cookie) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	must(t, err)
	request.AddCookie(cookie)
	response, page := send(t, noRedirect(http.DefaultClient), request)
	return response.StatusCode, page.Text()
}

// expire deletes the session of a client, like its expiry does.
func expire(t *testing.T, client *http.Client, console string) {
	t.Helper()
	sum := sha256.Sum256([]byte(sessionCookie(t, client, console).Value))
	clustertest.Get(t).Kubectl(t, "", "delete", "secret", "-n", "kuota-system", "kuota-session-"+hex.EncodeToString(sum[:]))
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if status, _ := withCookie(t, console+"/policies", sessionCookie(t, client, console)); status == http.StatusOK {
			return fmt.Errorf("deleted session: got status 200, want a redirect")
		}
		return nil
	})
}
