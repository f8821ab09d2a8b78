package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
)

// Messages reach receivers in their format, and those that are down, slow or hostile end
// within the time limit, without their address in the error.
func TestSend(t *testing.T) {
	t.Parallel()
	var got []byte
	stop := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/secret-ok":
			got, _ = io.ReadAll(r.Body)
		case "/secret-redirect":
			http.Redirect(w, r, "/secret-ok", http.StatusTemporaryRedirect)
		case "/secret-error":
			w.WriteHeader(http.StatusInternalServerError)
		case "/secret-slow":
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		case "/secret-endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	}))
	defer receiver.Close()
	defer close(stop)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	addresses := map[string]string{
		"ok": receiver.URL + "/secret-ok", "redirect": receiver.URL + "/secret-redirect", "error": receiver.URL + "/secret-error", "slow": receiver.URL + "/secret-slow",
		"endless": receiver.URL + "/secret-endless", "down": down.URL + "/secret", "plain": "http://192.0.2.1/secret", "file": "file:///secret", "none": "", "junk": "secret",
	}
	sender := New("prod <1>", func(_ context.Context, name string) (map[string][]byte, error) {
		if name == "missing" {
			return nil, errors.New("not found")
		}
		return map[string][]byte{"url": []byte(addresses[name] + "\n")}, nil
	})
	m := alerts.Message{ID: "m1", Alerts: []alerts.SentAlert{{ID: "a", Title: "Tasks wait", State: "firing", Summary: "<!channel> & more"}}}
	for name, want := range map[string]string{
		"ok": "", "endless": "", "redirect": "not followed", "error": "status 500", "slow": "within 5s", "down": "cannot be reached", "plain": "not https", "file": "no address", "none": "no key url", "junk": "no address", "missing": "not found",
	} {
		began := time.Now()
		err := sender.Send(t.Context(), v1alpha1.AlertReceiver{Name: name, SecretName: name, Type: v1alpha1.WebhookReceiver}, m)
		switch {
		case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: got error %v, want %q", name, err, want)
		case err != nil && strings.Contains(err.Error(), "/secret"):
			t.Errorf("%s: the error has the address: %v", name, err)
		}
		if took := time.Since(began); took > timeout+2*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
	for kind, want := range map[v1alpha1.AlertReceiverType][]string{
		v1alpha1.WebhookReceiver: {`"cluster":"prod \u003c1\u003e"`, `"id":"m1"`, `"state":"firing"`},
		v1alpha1.SlackReceiver:   {`FIRING Tasks wait: \u0026lt;!channel\u0026gt; \u0026amp; more`},
		v1alpha1.TeamsReceiver:   {`"AdaptiveCard"`, `FIRING Tasks wait`},
	} {
		if err := sender.Send(t.Context(), v1alpha1.AlertReceiver{SecretName: "ok", Type: kind}, m); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(got), text) || !json.Valid(got) {
				t.Errorf("%s: got %s, want %s", kind, got, text)
			}
		}
	}
}
