package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAudit checks that a save is recorded with the user, the change and the address:
// in the audit log of Kubernetes, in the console's log, and as an event on the object.
func TestAudit(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("audited")
	deleteTeamAtEnd(t, team)
	if status, page := post(t, filledForm(team)); status != http.StatusSeeOther {
		t.Fatalf("save: got status %d, want 303: %s", status, page.Find("#form-errors").Text())
	}

	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		log, err := os.ReadFile(filepath.Join(c.Dir, "logs", "audit.log"))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(log) {
			var entry struct {
				Verb             string
				User             struct{ Username string }
				ImpersonatedUser struct{ Username string }
				ObjectRef        struct{ Name, Resource string }
				Metadata         struct{ ImpersonationConstraint string } `json:"authenticationMetadata"`
			}
			if json.Unmarshal(line, &entry) != nil || entry.ObjectRef.Name != team && entry.ImpersonatedUser.Username == "" || entry.Verb != "create" || !bytes.Contains(line, []byte(team)) {
				continue
			}
			if entry.ImpersonatedUser.Username != "admin@example.com" || entry.User.Username != "system:serviceaccount:kuota-system:kuota" || entry.Metadata.ImpersonationConstraint != "impersonate:user-info" {
				return fmt.Errorf("audit log: got %+v, want admin@example.com impersonated by the console", entry)
			}
			return nil
		}
		return fmt.Errorf("audit log: got no create of %s, want one", team)
	})

	var saved v1alpha1.ComputeAllocation
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &saved))
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := c.Client.List(ctx, &events, client.InNamespace("default")); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.UID != saved.UID || event.ReportingController != "kuota.dev/console" {
				continue
			}
			for _, want := range []string{"Created by admin@example.com", "from 127.0.0.1", "spec.quota[0].accelerators: – → 1"} {
				if !strings.Contains(event.Note, want) {
					return fmt.Errorf("event: got %q, want it to contain %q", event.Note, want)
				}
			}
			return nil
		}
		return fmt.Errorf("got no event of the console, want one")
	})

	entry := waitForLog(t, "console", func(entry map[string]any) bool { return entry["audit"] == true && entry["name"] == team })
	for key, want := range map[string]any{"user": "admin@example.com", "from": "127.0.0.1", "action": "create", "kind": "ComputeAllocation", "uid": string(saved.UID)} {
		if entry[key] != want {
			t.Errorf("log entry %s: got %v, want %v", key, entry[key], want)
		}
	}
	if !strings.Contains(fmt.Sprint(entry["changes"]), `spec.displayName: – → "kept as typed"`) {
		t.Errorf("log entry changes: got %v, want spec.displayName", entry["changes"])
	}
}

// waitForLog waits for an entry of a console's log for which match returns true.
func waitForLog(t *testing.T, console string, match func(map[string]any) bool) (found map[string]any) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		log, err := os.ReadFile(filepath.Join(artefacts(), console+".log"))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(log) {
			var entry map[string]any
			if json.Unmarshal(line, &entry) == nil && match(entry) {
				found = entry
				return nil
			}
		}
		return fmt.Errorf("%s.log: got no matching entry, want one", console)
	})
	return found
}

// TestLogsContainNoSecrets checks that the log contains neither configured secrets nor
// sessions and tokens of users.
func TestLogsContainNoSecrets(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	admin := newUser(t, console(t), "admin")
	cookie := sessionCookie(t, admin, console(t)).Value
	response, err := admin.PostForm(console(t)+"/auth/logout", nil)
	must(t, err)
	response.Body.Close()
	waitForLog(t, "console", func(entry map[string]any) bool { return entry["msg"] == "signed out" })

	secrets := map[string]string{"a session's ID": cookie}
	for _, name := range []string{"client-secret", "session-keys"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, "signin", name))
		must(t, err)
		secrets[name] = strings.TrimSpace(string(text))
	}
	log, err := os.ReadFile(filepath.Join(artefacts(), "console.log"))
	must(t, err)
	for what, secret := range secrets {
		if len(secret) < 16 || bytes.Contains(log, []byte(secret)) {
			t.Errorf("the log contains %s", what)
		}
	}
	// Every JSON web token begins with this.
	if bytes.Contains(log, []byte("eyJ")) {
		t.Error("the log contains a token")
	}
}
