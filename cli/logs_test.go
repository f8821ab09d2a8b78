package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogGoesOn follows a log whose connection ends with the token, and then ends with the container: each
// line is printed once.
func TestLogGoesOn(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"2026-11-29T08:00:00.1Z one", "2026-11-29T08:00:00.2Z two\twith a tab", "2026-11-29T08:00:00.3Z three \x1b[31mred"}
	opened := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/pods"):
			fmt.Fprint(w, `{"pods":[{"name":"a"}]}`)
			return
		case r.URL.Query().Get("follow") != "true" || r.URL.Query().Get("timestamps") != "true":
			t.Errorf("asked for %s", r.URL)
		}
		opened++
		shown := all
		switch opened {
		case 1: // the token ends
			shown = all[:2]
			if err := os.WriteFile(token, []byte("second"), 0o600); err != nil {
				t.Error(err)
			}
		case 2: // it is refused once
			http.Error(w, `{"status":401,"detail":"The token is not accepted."}`, http.StatusUnauthorized)
			return
		default:
			w.Header().Set("Trailer", "Kuota-Log")
			if r.Header.Get("Authorization") != "Bearer second" {
				t.Errorf("the token is %q", r.Header.Get("Authorization"))
			}
		}
		fmt.Fprintln(w, strings.Join(shown, "\n"))
		w.Header().Set("Kuota-Log", "ended")
	}))
	defer server.Close()
	out, _, err := run(t, "logs", "ns/job/train", "-f", "--server", server.URL, "--token-file", token)
	if err != nil || out != "one\ntwo\twith a tab\nthree [31mred\n" || opened != 3 {
		t.Errorf("opened %d times: got %v\n%q", opened, err, out)
	}
}
