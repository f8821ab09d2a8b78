package utilization

import (
	"context"
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

// serve starts a server and returns its URL.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// validResponse is a response of Prometheus with one GPU of this utilization.
func validResponse(value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":%q,"kuota_node":"gpu-1","gpu":"0"},"value":[1,%q]}]}}`, gpuBusy, value)
}

// Every failure of Prometheus leads to a warning within the timeout, and to no Reading.
func TestFailures(t *testing.T) {
	hang := func(r *http.Request) { // until the client disconnects
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
		"never responds": {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "did not answer within 0.3 s"},
		"never completes the response": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"status":`)
			w.(http.Flusher).Flush()
			hang(r)
		}, "did not answer within 0.3 s"},
		"internal error":             {text(500, secret), "internal error"},
		"a proxy without Prometheus": {text(502, "<html>"+secret), "internal error"},
		"overloaded":                 {text(503, `{"status":"error","errorType":"timeout","error":"`+secret+`"}`), "internal error"},
		"too large a query":          {text(422, `{"status":"error","errorType":"execution","error":"`+secret+`"}`), "rejects the query"},
		"forbidden":                  {text(403, secret), "token of --prometheus-token-file"},
		"unauthorized":               {text(401, secret), "token of --prometheus-token-file"},
		"another path":               {text(404, secret), "and its path"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "is not Prometheus"},
		"an HTML page":        {text(200, "<!doctype html><p>"+secret), "is not Prometheus"},
		"an empty body":       {text(200, ""), "is not Prometheus"},
		"null":                {text(200, "null"), "is not Prometheus"},
		"no data":             {text(200, `{"status":"success","data":null}`), "is not Prometheus"},
		"a number for a list": {text(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), "is not Prometheus"},
		"a list of numbers":   {text(200, `{"status":"success","data":{"resultType":"vector","result":[1,2]}}`), "is not Prometheus"},
		"an incomplete body":  {text(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":`), "is not Prometheus"},
		"text as a number":    {text(200, validResponse("lots")), "is not Prometheus"},
		"more than the limit": {func(w http.ResponseWriter, _ *http.Request) {
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
			s, err := New(Options{URL: serve(t, tc.answer), Timeout: timeout, Warn: func(message string, err error) { logged = append(logged, fmt.Sprint(message, err)) }})
			must(t, err)
			s.Poll(t.Context())
			now := s.Now()
			if now.Reading != nil || !strings.Contains(now.Warning, tc.want) || strings.Contains(now.Warning, secret) || len(logged) == 0 {
				t.Errorf("%+v, logged %q; want a warning with %q", now, logged, tc.want)
			}
			if strings.HasPrefix(tc.want, "more than") {
				return // once is enough
			}
			_, err = s.History(t.Context(), Range{From: time.Now().Add(-time.Minute), To: time.Now(), Step: time.Second}, Inventory{}, "")
			if governance.KindOf(err) != governance.Unavailable || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("history: %v, want %q", err, tc.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s, err := New(Options{URL: server.URL})
	must(t, err)
	s.Poll(t.Context())
	if now := s.Now(); !strings.Contains(now.Warning, "cannot be reached") {
		t.Errorf("%+v", now)
	}

	// One that starts with the console is waited for.
	var logged int
	s, err = New(Options{URL: server.URL, Warn: func(string, error) { logged++ }})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	s.o.OnChange = stop
	must(t, s.Run(ctx))
	if now := s.Now(); !strings.Contains(now.Warning, "does not answer yet") || logged > 0 {
		t.Errorf("%+v, %d messages in the log", now, logged)
	}
}

// The last Reading stays with its age until it exceeds maxAge.
func TestLastReadingStays(t *testing.T) {
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	down := false
	s, err := New(Options{Now: func() time.Time { return clock }, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		if down {
			http.Error(w, "", 500)
		} else if strings.Contains(r.FormValue("query"), "max_over_time") || strings.Contains(r.FormValue("query"), "irate") {
			http.Error(w, `{"status":"error","errorType":"execution","error":"too many samples"}`, http.StatusUnprocessableEntity)
		} else {
			_, _ = io.WriteString(w, validResponse("50"))
		}
	})})
	must(t, err)
	if now := s.Now(); now.Reading != nil || now.Warning == "" {
		t.Errorf("before the first poll: %+v", now)
	}
	s.Poll(t.Context())
	now := s.Now()
	if now.Reading == nil || now.Reading.Devices[0].Busy != (Ratio{0.5, 1}) || !strings.Contains(now.Warning, "rejects the query") {
		t.Fatalf("with some failing queries: %+v", now)
	}
	down, clock = true, clock.Add(4*time.Minute)
	s.Poll(t.Context())
	if now := s.Now(); now.Reading == nil || now.Age != 4*time.Minute || !strings.Contains(now.Warning, "internal error") {
		t.Errorf("while Prometheus fails: %+v", now)
	}
	clock = clock.Add(2 * time.Minute)
	if now := s.Now(); now.Reading != nil {
		t.Errorf("a Reading is six minutes old: %+v", now)
	}
	down = false
	s.Poll(t.Context())
	if now := s.Now(); now.Reading == nil || now.Age != 0 {
		t.Errorf("after Prometheus recovered: %+v", now)
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("first\n"), 0o600))
	tokens := make(chan string, 10)
	s, err := New(Options{TokenFile: file, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		tokens <- r.Header.Get("Authorization")
		http.Error(w, "", 500)
	})})
	must(t, err)
	for _, token := range []string{"first", "second"} {
		must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
		s.Poll(t.Context())
		if got := <-tokens; got != "Bearer "+token {
			t.Errorf("got header %q, want token %q", got, token)
		}
	}
	must(t, os.Remove(file))
	s.Poll(t.Context())
	if now := s.Now(); !strings.Contains(now.Warning, "token for Prometheus cannot be read") {
		t.Errorf("%+v", now)
	}
}

// Concurrent requests for one history send one query, at most two queries run at once,
// and no request waits long.
func TestHistoryQueriesAreLimited(t *testing.T) {
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	queries, release := make(chan string, 100), make(chan struct{})
	s, err := New(Options{Timeout: 20 * time.Second, Now: func() time.Time { return clock }, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		queries <- r.FormValue("end")
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
			t.Errorf("History returns %v, want unavailable", err)
		}
	}
	if len(queries) != 2 {
		t.Errorf("%d concurrent queries, want 2", len(queries))
	}
	close(release)
	for i := range 3 {
		if _, err := s.History(t.Context(), span(i), Inventory{}, ""); err != nil {
			t.Error(err)
		}
	}
	h, err := s.History(t.Context(), span(0), Inventory{}, "")
	if err != nil || len(h.Times) != 61 || !strings.Contains(h.Warning, "may be incomplete") || len(queries) != 3 {
		t.Errorf("%d queries, %d points, %q, %v", len(queries), len(h.Times), h.Warning, err)
	}
	for _, invalid := range []Range{{}, {From: clock, To: clock.Add(-time.Hour), Step: time.Minute}, {From: clock.Add(-time.Hour), To: clock, Step: time.Millisecond}, {From: clock.AddDate(-9, 0, 0), To: clock, Step: 24 * time.Hour}} {
		if _, err := s.History(t.Context(), invalid, Inventory{}, ""); governance.KindOf(err) != governance.Invalid {
			t.Errorf("%v: %v, want invalid", invalid, err)
		}
	}
}
