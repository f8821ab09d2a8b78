package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"kuota.dev/kuota/cmd/localcluster/provider/providertest"
)

const testRBAC = `apiVersion: v1
kind: ServiceAccount
metadata: {name: kuota, namespace: kuota-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: kuota-system}
`

const testTeam = `apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: audited}
spec: {displayName: Audited, fairShareWeight: 1}
`

// TestInstanceWithAProvider starts one instance for all its subtests.
func TestInstanceWithAProvider(t *testing.T) {
	rbac := t.TempDir()
	if err := os.WriteFile(filepath.Join(rbac, "all.yaml"), []byte(testRBAC), 0o644); err != nil {
		t.Fatal(err)
	}
	l := startInstance(t, "--users", "users.yaml", "--crds", "../../deploy/crds", "--rbac", rbac)
	t.Run("a user signs in", func(t *testing.T) { testSignIn(t, l) })
	t.Run("the provider restarts", func(t *testing.T) { testProviderRestart(t, l) })
	t.Run("the console has its own identity", func(t *testing.T) { testConsoleIdentity(t, l) })
	t.Run("changes are audited", func(t *testing.T) { testAudit(t, l) })
}

// browserAt returns a browser with the console's client credentials.
func browserAt(t *testing.T, l layout) *providertest.Browser {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(l.signin(name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	return providertest.New(t, read("issuer"), read("client-id"), read("client-secret"))
}

// editUsers replaces a text in the instance's users file.
func editUsers(t *testing.T, l layout, from, to string) {
	t.Helper()
	b, err := os.ReadFile(l.signin("users.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("users.yaml does not contain %q", from)
	}
	if err := os.WriteFile(l.signin("users.yaml"), []byte(strings.Replace(string(b), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func testSignIn(t *testing.T, l layout) {
	b := browserAt(t, l)
	form := b.Authorize(oauth2.S256ChallengeOption("a verifier"))
	if p := b.Submit(form, "ada", "wrong"); p.Alert() == "" || !p.Form() {
		t.Errorf("a wrong password leads to %s (%d)", p.URL, p.Status)
	}
	tok := b.SignIn("ada", "kuota-ada")
	if c := b.IDToken(tok); c.Email != "ada@example.com" || strings.Join(c.Groups, " ") != "vision-team" || c.Nonce != "the-nonce" {
		t.Errorf("the ID token has %+v", c)
	}
	editUsers(t, l, "groups: [vision-team]", "groups: [vision-team, extra]")
	tok, err := b.Refresh(tok.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	info, err := b.Userinfo(tok)
	if err != nil {
		t.Fatal(err)
	}
	for where, c := range map[string]providertest.Claims{"ID token": b.IDToken(tok), "userinfo": info} {
		if strings.Join(c.Groups, " ") != "vision-team extra" {
			t.Errorf("after the edit, the %s has groups %v", where, c.Groups)
		}
	}
	editUsers(t, l, "name: ada\n", "name: renamed\n")
	if _, err := b.Refresh(tok.RefreshToken); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("a removed user gets %v", err)
	}
	if _, err := b.Userinfo(tok); err == nil {
		t.Error("a removed user still has userinfo")
	}
}

func testProviderRestart(t *testing.T, l layout) {
	b := browserAt(t, l)
	tok := b.SignIn("grace", "kuota-grace")
	if out, err := program(t, "stop", providerName, "--dir", l.dir); err != nil {
		t.Fatalf("stop: %v\n%s", err, out)
	}
	if _, err := b.Refresh(tok.RefreshToken); err == nil || providertest.ErrorCode(err) != "" {
		t.Errorf("a stopped provider answers %v", err)
	}
	if out, err := program(t, "start", providerName, "--dir", l.dir); err != nil {
		t.Fatalf("start: %v\n%s", err, out)
	}
	again, err := b.Refresh(tok.RefreshToken)
	if err != nil {
		t.Fatalf("the refresh token did not survive the restart: %v", err)
	}
	if c := b.IDToken(again); c.Username != "grace" {
		t.Errorf("the ID token has %+v", c)
	}
	b.SignIn("", "") // fails if the browser gets the form
}

func testConsoleIdentity(t *testing.T, l layout) {
	out := kubectl(t, l.componentConfig(consoleName), "", "auth", "whoami")
	for _, want := range []string{"system:serviceaccount:kuota-system:kuota", "system:serviceaccounts:kuota-system"} {
		if !strings.Contains(out, want) {
			t.Errorf("whoami does not contain %s:\n%s", want, out)
		}
	}
	kubectl(t, l.kubeconfig(), "", "get", "serviceaccount", "kuota", "--namespace", consoleNamespace)
}

func testAudit(t *testing.T, l layout) {
	kubectl(t, l.kubeconfig(), testTeam, "apply", "-f", "-")
	kubectl(t, l.kubeconfig(), "", "get", "computeallocations")
	kubectl(t, l.kubeconfig(), "", "patch", "computeallocation", "audited", "--subresource=status", "--type=merge", "-p", `{"status":{}}`)
	kubectl(t, l.kubeconfig(), "", "delete", "computeallocation", "audited")
	var log string // of the team; the start tries other objects
	err := waitFor(context.Background(), 10*time.Second, func(context.Context) error {
		b, err := os.ReadFile(l.log("audit"))
		log = ""
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, `"name":"audited"`) {
				log += line
			}
		}
		if err == nil && !strings.Contains(log, `"verb":"delete"`) {
			err = errors.New("the deletion is not logged")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(log, "\n") != 2 || !strings.Contains(log, `"verb":"create"`) || !strings.Contains(log, "kubernetes-admin") {
		t.Errorf("want a creation and a deletion, got\n%s", log)
	}
}

// kubectl runs the kubectl of LOCALCLUSTER_BIN.
func kubectl(t *testing.T, kubeconfig, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("LOCALCLUSTER_BIN"), "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
