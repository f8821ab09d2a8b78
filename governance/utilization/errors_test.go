package utilization

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
)

// answering is a server that answers all with this.
func answering(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// right is an answer of Prometheus with one GPU of which this is the value.
func right(value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":%q,"kuota_node":"gpu-1","gpu":"0"},"value":[1,%q]}]}}`, gpuBusy, value)
}

// Whatever is wrong with Prometheus, people are told in a sentence, in time, and no
// figure is made up.
func TestTrouble(t *testing.T) {
	hang := func(r *http.Request) { // until whoever asks goes away
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const secret = "secret-of-the-server"
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"accepts and never answers": {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "did not answer within 0.3 s"},
		"begins and never ends": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"status":`)
			w.(http.Flusher).Flush()
			hang(r)
		}, "did not answer within 0.3 s"},
		"internal error":              {text(500, secret), "internal error"},
		"a proxy without it":          {text(502, "<html>"+secret), "internal error"},
		"overloaded":                  {text(503, `{"status":"error","errorType":"timeout","error":"`+secret+`"}`), "internal error"},
		"a question too large for it": {text(422, `{"status":"error","errorType":"execution","error":"`+secret+`"}`), "rejects the query"},
		"no right":                    {text(403, secret), "token of --prometheus-token-file"},
		"nobody":                      {text(401, secret), "token of --prometheus-token-file"},
		"another path":                {text(404, secret), "and its path"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "is not Prometheus"},
		"a page":              {text(200, "<!doctype html><p>"+secret), "is not Prometheus"},
		"nothing":             {text(200, ""), "is not Prometheus"},
		"null":                {text(200, "null"), "is not Prometheus"},
		"no data":             {text(200, `{"status":"success","data":null}`), "is not Prometheus"},
		"a number for a list": {text(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), "is not Prometheus"},
		"a list of numbers":   {text(200, `{"status":"success","data":{"resultType":"vector","result":[1,2]}}`), "is not Prometheus"},
		"half an answer":      {text(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":`), "is not Prometheus"},
		"text for a number":   {text(200, right("lots")), "is not Prometheus"},
		"more than is read": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":"`)
			for block := strings.Repeat("x", 1<<20); ; {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
			}
		}, "more than 32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged []string
			timeout := 300 * time.Millisecond
			if strings.HasPrefix(tc.want, "more than") {
				timeout = 20 * time.Second
			}
			s, err := New(Options{URL: answering(t, tc.answer), Timeout: timeout, Warn: func(what string, err error) { logged = append(logged, fmt.Sprint(what, err)) }})
			must(t, err)
			s.Poll(t.Context())
			now := s.Now()
			if now.Reading != nil || !strings.Contains(now.Warning, tc.want) || strings.Contains(now.Warning, secret) || len(logged) == 0 {
				t.Errorf("%+v, and in the log %q; want a sentence with %q", now, logged, tc.want)
			}
			if strings.HasPrefix(tc.want, "more than") {
				return // once is enough
			}
			_, err = s.History(t.Context(), Range{From: time.Now().Add(-time.Minute), To: time.Now(), Step: time.Second}, Inventory{}, "")
			if governance.KindOf(err) != governance.Unavailable || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the history: %v", err)
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s, err := New(Options{URL: server.URL})
	must(t, err)
	s.Poll(t.Context())
	if now := s.Now(); !strings.Contains(now.Warning, "cannot be reached") {
		t.Errorf("%+v", now)
	}
}

// What was known stays, with its age, until it is too old to be what is now.
func TestWhatWasKnownStays(t *testing.T) {
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	down := false
	s, err := New(Options{Now: func() time.Time { return clock }, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		if down {
			http.Error(w, "", 500)
		} else if strings.Contains(r.FormValue("query"), "max_over_time") || strings.Contains(r.FormValue("query"), "irate") {
			http.Error(w, `{"status":"error","errorType":"execution","error":"too many samples"}`, http.StatusUnprocessableEntity)
		} else {
			_, _ = io.WriteString(w, right("50"))
		}
	})})
	must(t, err)
	if now := s.Now(); now.Reading != nil || now.Warning == "" {
		t.Errorf("before it was asked: %+v", now)
	}
	s.Poll(t.Context())
	now := s.Now()
	if now.Reading == nil || now.Reading.Devices[0].Busy != (Ratio{0.5, 1}) || !strings.Contains(now.Warning, "rejects the query") {
		t.Fatalf("where only some questions are answered: %+v", now)
	}
	down, clock = true, clock.Add(4*time.Minute)
	s.Poll(t.Context())
	if now := s.Now(); now.Reading == nil || now.Age != 4*time.Minute || !strings.Contains(now.Warning, "internal error") {
		t.Errorf("while it is away: %+v", now)
	}
	clock = clock.Add(2 * time.Minute)
	if now := s.Now(); now.Reading != nil {
		t.Errorf("what is six minutes old is shown as now: %+v", now)
	}
	down = false
	s.Poll(t.Context())
	if now := s.Now(); now.Reading == nil || now.Age != 0 {
		t.Errorf("once it is back: %+v", now)
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("first\n"), 0o600))
	said := make(chan string, 10)
	s, err := New(Options{TokenFile: file, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		said <- r.Header.Get("Authorization")
		http.Error(w, "", 500)
	})})
	must(t, err)
	for _, token := range []string{"first", "second"} {
		must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
		s.Poll(t.Context())
		if got := <-said; got != "Bearer "+token {
			t.Errorf("%q for %q", got, token)
		}
	}
	must(t, os.Remove(file))
	s.Poll(t.Context())
	if now := s.Now(); !strings.Contains(now.Warning, "token for Prometheus cannot be read") {
		t.Errorf("%+v", now)
	}
}

// However many look at a history, it is asked for once; two at a time, and nobody
// waits long.
func TestHistoryIsSparing(t *testing.T) {
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	asked, release := make(chan string, 100), make(chan struct{})
	s, err := New(Options{Timeout: 20 * time.Second, Now: func() time.Time { return clock }, URL: answering(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.FormValue("end")
		<-release
		_, _ = io.WriteString(w, `{"status":"success","warnings":["partial"],"data":{"resultType":"matrix","result":[]}}`)
	})})
	must(t, err)
	span := func(i int) Range {
		return Range{From: clock.Add(-time.Hour), To: clock.Add(-time.Duration(i) * time.Minute), Step: time.Minute}
	}
	answers := make(chan error, 9)
	for i := range 9 {
		go func() {
			_, err := s.History(t.Context(), span(i%3), Inventory{}, fmt.Sprint("pool-", i))
			answers <- err
		}()
	}
	for range 9 {
		if err := <-answers; governance.KindOf(err) != governance.Unavailable || !strings.Contains(err.Error(), "is loading") {
			t.Errorf("a page waited, and got %v", err)
		}
	}
	if len(asked) != 2 {
		t.Errorf("%d questions at once", len(asked))
	}
	close(release)
	for i := range 3 {
		if _, err := s.History(t.Context(), span(i), Inventory{}, ""); err != nil {
			t.Error(err)
		}
	}
	h, err := s.History(t.Context(), span(0), Inventory{}, "")
	if err != nil || len(h.Times) != 61 || !strings.Contains(h.Warning, "may be incomplete") || len(asked) != 3 {
		t.Errorf("%d questions, %d points, %q, %v", len(asked), len(h.Times), h.Warning, err)
	}
	for _, wrong := range []Range{{}, {From: clock, To: clock.Add(-time.Hour), Step: time.Minute}, {From: clock.Add(-time.Hour), To: clock, Step: time.Millisecond}, {From: clock.AddDate(-9, 0, 0), To: clock, Step: 24 * time.Hour}} {
		if _, err := s.History(t.Context(), wrong, Inventory{}, ""); governance.KindOf(err) != governance.Invalid {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
