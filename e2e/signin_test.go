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

// The same scenes against the sample provider and against one that is not
// ours, and that names groups in userinfo only.
func TestSigningIn(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t) // makes the admin's binding
	for name, env := range map[string]func(*testing.T) []string{
		"the sample provider": func(*testing.T) []string { return signInEnv(c) },
		"npm's oidc-provider": func(t *testing.T) []string {
			return certified(t, map[string][]string{"admin": {"kuota-admins"}, "ada": {"vision-team"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := env(t)
			one := replica(t, "signin-one-"+strings.Fields(name)[0], configuration...)
			two := replica(t, "signin-two-"+strings.Fields(name)[0], configuration...)
			must(t, waitReady(one))
			must(t, waitReady(two))
			t.Run("in and out", func(t *testing.T) { inAndOut(t, one, two) })
			t.Run("expiry in the middle of a form", func(t *testing.T) { expiryInForm(t, one) })
			t.Run("two people in one process", func(t *testing.T) { interleaved(t, one) })
		})
	}
}

// inAndOut signs in and out; a cookie that was kept is refused afterwards, on
// the other replica too.
func inAndOut(t *testing.T, one, two string) {
	admin := newPerson(t, one, "admin")
	kept := sessionCookie(t, admin, one)
	for _, address := range []string{one, two} {
		if status, body := withCookie(t, address+"/policies", kept); status != http.StatusOK || !strings.Contains(body, "admin@example.com") {
			t.Fatalf("%s answers somebody signed in with %d", address, status)
		}
	}
	response, err := admin.PostForm(one+"/auth/logout", nil)
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("signing out answers %s", response.Status)
	}
	if status, _ := withCookie(t, one+"/policies", kept); status != http.StatusSeeOther {
		t.Errorf("after signing out a kept cookie answers %d", status)
	}
	// The other replica learns of it by its watch.
	clustertest.Eventually(t, time.Second, func(context.Context) error {
		if status, _ := withCookie(t, two+"/policies", kept); status != http.StatusSeeOther {
			return fmt.Errorf("the other replica answers %d", status)
		}
		return nil
	})
}

// expiryInForm has the session end between filling in a form and saving it.
func expiryInForm(t *testing.T, address string) {
	c := clustertest.Get(t)
	admin := newPerson(t, address, "admin")
	team := clustertest.Name("expired")
	removed(t, team)
	expire(t, admin, address)
	status, page := postTo(t, admin, address, filledForm(team))
	if status != http.StatusUnauthorized || !strings.Contains(page.Text(), "nothing was saved") {
		t.Fatalf("a save without a session answers %d: %s", status, page.Find("main").Text())
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("it was saved: %v", err)
	}
	_, again, _ := strings.Cut(page.Find("meta[http-equiv=refresh]").AttrOr("content", ""), "url=")
	if _, err := url.Parse(again); again == "" || err != nil {
		t.Fatalf("the page leads on to %q", again)
	}
	response, page := load(t, admin, address+again)
	for range 3 { // signed in at the provider still, or not
		if strings.HasPrefix(response.Request.URL.String(), address) {
			break
		}
		response, page = fillIn(t, admin, response, page, "admin")
	}
	for input, want := range map[string]string{"team": team, "row-0-type": "ml.g5.2xlarge", "row-0-accelerators": "1", "display-name": "kept as typed", "weight": "10"} {
		if got := page.Find("#"+input).AttrOr("value", ""); got != want {
			t.Errorf("the form comes back with %s %q, want %q", input, got, want)
		}
	}
	if !strings.Contains(page.Text(), "review them and save again") {
		t.Errorf("the form does not say why it is filled in")
	}
	if status, page := postTo(t, admin, address, filledForm(team)); status != http.StatusSeeOther {
		t.Errorf("saving it then answers %d: %s", status, page.Find("#form-errors").Text())
	}
}

// interleaved has two people ask at once; nobody sees the other's page.
func interleaved(t *testing.T, address string) {
	var people sync.WaitGroup
	for _, name := range []string{"admin", "ada"} {
		client := newPerson(t, address, name)
		people.Go(func() {
			for range 40 {
				_, body := fetch(t, client, address+"/policies")
				for other := range map[string]bool{"admin": true, "ada": true} {
					if strings.Contains(body, other+"@example.com") != (other == name) {
						t.Errorf("%s got the page of somebody else", name)
						return
					}
				}
			}
		})
	}
	people.Wait()
}

func sessionCookie(t *testing.T, client *http.Client, console string) *http.Cookie {
	t.Helper()
	cookies := cookiesOf(t, client, console)
	return &http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value}
}

func withCookie(t *testing.T, address string, cookie *http.Cookie) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	must(t, err)
	request.AddCookie(cookie)
	response, page := send(t, noRedirect(http.DefaultClient), request)
	return response.StatusCode, page.Text()
}

// expire ends somebody's session as the clock would.
func expire(t *testing.T, client *http.Client, console string) {
	t.Helper()
	sum := sha256.Sum256([]byte(sessionCookie(t, client, console).Value))
	clustertest.Get(t).Kubectl(t, "", "delete", "secret", "-n", "kuota-system", "kuota-session-"+hex.EncodeToString(sum[:]))
	clustertest.Eventually(t, 2*time.Second, func(context.Context) error {
		if status, _ := withCookie(t, console+"/policies", sessionCookie(t, client, console)); status == http.StatusOK {
			return fmt.Errorf("it goes on")
		}
		return nil
	})
}
