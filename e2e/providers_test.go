package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// browserDir returns the folder where make browser installs the npm packages of the
// tests.
func browserDir() string {
	if dir := os.Getenv("KUOTA_BROWSER"); dir != "" {
		return dir
	}
	return filepath.Join(clustertest.Root(), ".local", "browser")
}

// oidcProvider runs npm's oidc-provider until the test ends, and returns the
// environment of a console that uses it. groups maps a user to their groups.
func oidcProvider(t *testing.T, groups map[string][]string) (env []string) {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(groups)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "groups.json"), text, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("certified-secret"), 0o600))
	command := exec.Command(filepath.Join(browserDir(), "node"), filepath.Join(browserDir(), "provider", "server.mjs"), filepath.Join(dir, "groups.json"))
	out, err := command.StdoutPipe()
	must(t, err)
	if err := consoles.StartChild(command, syscall.SIGTERM); err != nil {
		t.Fatalf("start the provider that make browser installs: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		if issuer, ok := strings.CutPrefix(scanner.Text(), "issuer "); ok {
			go func() {
				for scanner.Scan() { // drain the pipe, or the provider blocks once it is full
				}
			}()
			return append(signInEnv(clustertest.Get(t)), "KUOTA_OIDC_ISSUER="+issuer, "KUOTA_OIDC_CLIENT_SECRET_FILE="+filepath.Join(dir, "secret"))
		}
	}
	t.Fatal("the provider did not start")
	return nil
}
