package replicas_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// saver saves new allocations in the form of the console, like an admin who repeats
// a save that was not answered.
type saver struct {
	client   *http.Client
	replicas []*consoles.Replica

	mu    sync.Mutex
	saved []string // teams whose save was confirmed
}

// run saves until ctx ends, each time at the next replica. It completes a save that
// it began.
func (s *saver) run(ctx context.Context, t *testing.T) {
	for i := 0; ctx.Err() == nil; i++ {
		team := clustertest.Name("saved")
		values := url.Values{
			"action": {"save"}, "request-id": {clustertest.Name("request")}, "team": {team}, "weight": {"10"}, "display-name": {""}, "description": {""},
			"strategy": {"LendAndBorrow"}, "borrow-percent": {"50"}, "preemption": {"LowerPriority"},
			"row-0-type": {"ml.g5.2xlarge"}, "row-0-accelerators": {"1"}, "row-0-instances": {""}, "row-0-vcpu": {""}, "row-0-memory": {""},
		}
		var err error
		for try, began := 0, time.Now(); ; try++ {
			if err = s.save(s.replicas[(i+try)%len(s.replicas)], values); err == nil {
				break
			}
			if time.Since(began) > patience {
				t.Errorf("save of %s: %v", team, err)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		s.mu.Lock()
		s.saved = append(s.saved, team)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (s *saver) save(r *consoles.Replica, values url.Values) error {
	client := *s.client
	client.Timeout = 3 * time.Second
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	request, err := http.NewRequest(http.MethodPost, r.Address+"/policies/allocations/new", strings.NewReader(values.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if location := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || !strings.Contains(location, "created=") {
		return fmt.Errorf("%s, to %q", response.Status, location)
	}
	return nil
}
