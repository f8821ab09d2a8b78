package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

func TestConsoleEnvHasSignInSettingsOnlyWithAnIssuer(t *testing.T) {
	l := layout{dir: "/d"}
	without := consoleEnv(l, 8080, "")
	want := []string{"KUBECONFIG=/d/kubeconfigs/kuota", "KUOTA_LISTEN=127.0.0.1:8080", "KUOTA_URL=http://127.0.0.1:8080", "KUOTA_NAMESPACE=kuota-system", "KUOTA_HISTORY=/d/data/history.db"}
	if !slices.Equal(without, want) {
		t.Errorf("without an issuer: %q", without)
	}
	with := consoleEnv(l, 8080, "http://127.0.0.1:9")
	for _, v := range []string{"KUOTA_OIDC_ISSUER=http://127.0.0.1:9", "KUOTA_OIDC_CLIENT_ID=kuota", "KUOTA_OIDC_COMMAND_LINE_CLIENT_ID=kuota-cli",
		"KUOTA_OIDC_CLIENT_SECRET_FILE=/d/signin/client-secret", "KUOTA_SESSION_KEYS_FILE=/d/signin/session-keys"} {
		if !slices.Contains(with, v) {
			t.Errorf("with an issuer, %s is missing in %q", v, with)
		}
	}
}

func TestPreflightReportsMistakes(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	broken := filepath.Join(dir, "users.yaml")
	for path, content := range map[string]string{kueueInstall(bin): "", broken: "- {name: ada}"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for want, o := range map[string]upOptions{
		`--users: ` + broken + `: user "ada": has no password`: {users: broken},
		"--rbac: ":               {rbac: filepath.Join(dir, "missing")},
		"--console needs --rbac": {console: broken},
	} {
		o.bin = bin
		lock, err := preflight(layout{dir: filepath.Join(dir, "instance")}, o)
		if err == nil {
			lock.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestSplitSeparatesNamespaces(t *testing.T) {
	objs, err := parseManifest([]byte(testRBAC))
	if err != nil {
		t.Fatal(err)
	}
	namespaces, others := split(objs, "Namespace")
	if len(namespaces) != 1 || len(others) != 1 || namespaces[0].GetKind() != "Namespace" {
		t.Errorf("namespaces %v, others %v", namespaces, others)
	}
}

func TestUserLinesListEnabledUsers(t *testing.T) {
	lines := userLines([]provider.User{
		{Name: "ada", Password: "p1", About: "first"},
		{Name: "out", Password: "p2", Disabled: true},
		{Name: "grace", Password: "longer", About: "second"},
	})
	if len(lines) != 2 || !strings.Contains(lines[0], "ada") || !strings.Contains(lines[1], "password longer") || !strings.HasSuffix(lines[1], "second") {
		t.Errorf("%q", lines)
	}
}

func TestSignInFilesAreReadableByTheOwnerOnly(t *testing.T) {
	l := layout{dir: t.TempDir()}
	if err := l.reset(); err != nil {
		t.Fatal(err)
	}
	if err := writeSignIn(l, "users.yaml", "http://127.0.0.1:9"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{l.path("signin"): 0o700, l.signin("client-secret"): 0o600, l.signin("session-keys"): 0o600, l.signin("users.yaml"): 0o600} {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, st.Mode().Perm())
		}
	}
}
