package soak_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"

	"github.com/PuerkitoBio/goquery"
)

// As in the page's script: when a page without an event says that the connection is
// lost, when it opens another one, and how long it waits before that.
const (
	quiet      = 3 * time.Second
	silence    = 6 * time.Second
	firstDelay = 300 * time.Millisecond
	lastDelay  = 10 * time.Second
)

// stream is the live part of one open page, as the page's script keeps it. It is safe
// for concurrent use.
type stream struct {
	path     string // of the page
	address  string // of its events, without the host
	client   *http.Client
	replicas []*consoles.Replica // the next one is used after a failure, as behind a Service

	mu       sync.Mutex
	on       *consoles.Replica // of the current connection
	hangUp   func()            // ends the current connection
	at       time.Time         // last event; zero before the first
	state    string            // data-state of #cluster-status
	rows     map[string]string // HTML of the table rows by their id
	reopened int               // because the page lacked a row that the server expected
	gaps     []time.Duration   // between two events
	silent   time.Duration     // the longest of gaps
}

// openStream reads a page and returns its stream, which run opens.
func openStream(t *testing.T, client *http.Client, path string, replicas []*consoles.Replica) *stream {
	t.Helper()
	text, err := consoles.Get(t.Context(), client, replicas[0].Address+path)
	must(t, err)
	page, err := goquery.NewDocumentFromReader(strings.NewReader(text))
	must(t, err)
	address, ok := page.Find("body").Attr("data-stream")
	if !ok {
		t.Fatalf("page %s has no stream", path)
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	address += separator + url.Values{"as": {page.Find("body").AttrOr("data-user", "")}}.Encode()
	return &stream{path: path, address: address, client: &http.Client{Jar: client.Jar}, replicas: replicas}
}

// run reads events until ctx ends, and reconnects as the page's script does.
func (s *stream) run(ctx context.Context) {
	delay := firstDelay
	for i := 0; ctx.Err() == nil; i++ {
		if s.read(ctx, s.replicas[i%len(s.replicas)]) {
			delay = firstDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(float64(delay) * (0.75 + rand.Float64()/2))):
		}
		delay = min(2*delay, lastDelay)
	}
}

// read reads events of one replica until the connection ends or is silent for too
// long. It reports whether there was an event.
func (s *stream) read(ctx context.Context, replica *consoles.Replica) (any bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, replica.Address+s.address, nil)
	if err != nil {
		return false
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("Sec-Fetch-Mode", "cors")
	response, err := s.client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, response.Body)
		return false
	}
	s.mu.Lock()
	s.on, s.hangUp = replica, cancel
	s.rows = nil // the server sends all of them on a new connection
	s.mu.Unlock()
	reader := bufio.NewReaderSize(response.Body, 64<<10)
	var data strings.Builder
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return any
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data.WriteString(text)
		} else if line == "\n" && data.Len() > 0 {
			any = true
			watchdog.Reset(silence)
			if !s.merge(data.String()) {
				return any
			}
			data.Reset()
		}
	}
}

var (
	statusState = regexp.MustCompile(`id="cluster-status"[^>]* data-state="([a-z]+)"`)
	tableRow    = regexp.MustCompile(`(?s)<tr id="([^"]*)"(.*?)</tr>`)
)

// merge applies an event as the page's script does. It reports false if the page lacks
// a row that the server expects: then it must load all rows again.
func (s *stream) merge(html string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.at.IsZero() {
		s.gaps = append(s.gaps, now.Sub(s.at))
		s.silent = max(s.silent, now.Sub(s.at))
	}
	s.at = now
	if found := statusState.FindStringSubmatch(html); found != nil {
		s.state = found[1]
		return true
	}
	rows := map[string]string{}
	for _, row := range tableRow.FindAllStringSubmatch(html, -1) {
		if rows[row[1]] = row[0]; strings.HasPrefix(row[2], " data-keep") {
			before, ok := s.rows[row[1]]
			if !ok {
				s.reopened++
				return false
			}
			rows[row[1]] = before
		}
	}
	s.rows = rows
	return true
}

// goHome ends the connection if it is not to the first replica, as a load balancer
// does when a replica is ready again.
func (s *stream) goHome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on != s.replicas[0] && s.hangUp != nil {
		s.hangUp()
	}
}

// fresh returns nil if the page does not say that its data is old.
func (s *stream) fresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.at.IsZero():
		return fmt.Errorf("page %s got no event", s.path)
	case time.Since(s.at) > quiet:
		return fmt.Errorf("page %s lost the connection %s ago", s.path, time.Since(s.at).Round(time.Millisecond))
	case s.state != "ok":
		return fmt.Errorf("page %s shows that the cluster is %s", s.path, s.state)
	}
	return nil
}

// stale returns nil if the page says that its data is old.
func (s *stream) stale() error {
	if s.fresh() == nil {
		return fmt.Errorf("page %s does not show that its data is old", s.path)
	}
	return nil
}

// row returns the texts of the cells of a row, nil if there is no such row.
func (s *stream) row(id string) []string {
	s.mu.Lock()
	html := s.rows[id]
	s.mu.Unlock()
	return cells(html)
}

// find returns the texts of the cells of the row whose first cell has this name.
func (s *stream) find(name string) []string {
	s.mu.Lock()
	rows := make([]string, 0, len(s.rows))
	for _, html := range s.rows {
		if strings.Contains(html, ">"+name+"<") {
			rows = append(rows, html)
		}
	}
	s.mu.Unlock()
	for _, html := range rows {
		if texts := cells(html); len(texts) > 0 && texts[0] == name {
			return texts
		}
	}
	return nil
}

// cells returns the texts of the cells of a table row.
func cells(html string) (texts []string) {
	if html == "" {
		return nil
	}
	page, err := goquery.NewDocumentFromReader(strings.NewReader("<table>" + html + "</table>"))
	if err != nil {
		return nil
	}
	page.Find("th, td").Each(func(_ int, cell *goquery.Selection) {
		texts = append(texts, strings.Join(strings.Fields(cell.Text()), " "))
	})
	return texts
}

// streams are all open pages.
type streams []*stream

// all returns the first error that check returns for a stream.
func (all streams) all(check func(*stream) error) error {
	for _, s := range all {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// figures prints the time between two events over all streams.
func (all streams) figures() {
	var gaps []time.Duration
	longest, reopened := time.Duration(0), 0
	for _, s := range all {
		s.mu.Lock()
		gaps, longest, reopened = append(gaps, s.gaps...), max(longest, s.silent), reopened+s.reopened
		s.mu.Unlock()
	}
	if len(gaps) == 0 {
		return
	}
	slices.Sort(gaps)
	figure("events", float64(len(gaps)), "events")
	figure("event_gap_p99", gaps[len(gaps)*99/100].Seconds(), "s")
	figure("event_gap_max", longest.Seconds(), "s")
	figure("streams_reopened_for_a_row", float64(reopened), "times")
}

// TestMerge checks that a stream keeps the rows of a page as the script does.
func TestMerge(t *testing.T) {
	s := &stream{}
	part := func(rows string) string { return `<div id="teams"><table><tbody>` + rows + `</tbody></table></div>` }
	for _, step := range []struct {
		name, html string
		want       bool
		wantRows   map[string]string // second cell by id
	}{
		{"all rows", part(`<tr id="team-a"><th>a</th><td class="n">1</td></tr><tr id="team-b"><th>b</th><td>2</td></tr>`), true, map[string]string{"team-a": "1", "team-b": "2"}},
		{"one changed", part(`<tr id="team-a" data-keep></tr><tr id="team-b"><th>b</th><td> 3
			</td></tr>`), true, map[string]string{"team-a": "1", "team-b": "3"}},
		{"the state", `<p id="cluster-status" class="cluster" data-state="unreachable">`, true, map[string]string{"team-a": "1", "team-b": "3"}},
		{"one deleted", part(`<tr id="team-b" data-keep></tr>`), true, map[string]string{"team-b": "3"}},
		{"one that the page lacks", part(`<tr id="team-c" data-keep></tr>`), false, map[string]string{"team-b": "3"}},
	} {
		if got := s.merge(step.html); got != step.want {
			t.Errorf("%s: got %t, want %t", step.name, got, step.want)
		}
		if len(s.rows) != len(step.wantRows) {
			t.Errorf("%s: got %d rows, want %d", step.name, len(s.rows), len(step.wantRows))
		}
		for id, want := range step.wantRows {
			if got := s.row(id); len(got) != 2 || got[1] != want {
				t.Errorf("%s: row %s: got %q, want %s", step.name, id, got, want)
			}
		}
	}
	if s.state != "unreachable" || s.fresh() == nil || s.stale() != nil {
		t.Errorf("got state %q, want unreachable and stale", s.state)
	}
	if got := s.find("b"); len(got) != 2 || got[1] != "3" {
		t.Errorf("find b: got %q", got)
	}
}
