package bulk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
)

const (
	// MaxItems is how many objects one run changes: its record fits into a Secret.
	MaxItems = 1000
	// kept is how long the record of a run is kept.
	kept = 24 * time.Hour
	// saved is how often it is written.
	saved = time.Second
	// lostAfter is how long a run that has not ended can go without being written.
	lostAfter = 20 * time.Second
	// parallel is how many objects are changed at a time.
	parallel = 8
)

// Item is one object of a run.
type Item struct {
	Name    string `json:"name"`
	Team    string `json:"team,omitempty"`
	URL     string `json:"url,omitempty"` // of its page
	Done    bool   `json:"done,omitempty"`
	Problem string `json:"problem,omitempty"` // why it was not changed; empty until it was tried
}

// Run is a change of many objects.
type Run struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Title   string    `json:"title"` // such as "Stop 200 tasks"
	Back    string    `json:"back"`  // the page that it was started from
	Items   []Item    `json:"items"`
	Updated time.Time `json:"updated"`
	Ended   bool      `json:"ended,omitempty"`
}

// Counts returns how many items were changed, were not changed, and were not tried yet.
func (r *Run) Counts() (done, failed, left int) {
	for _, item := range r.Items {
		switch {
		case item.Done:
			done++
		case item.Problem != "":
			failed++
		default:
			left++
		}
	}
	return done, failed, left
}

// Lost reports whether the replica that works on the run is gone: what is left will not be
// changed.
func (r *Run) Lost(now time.Time) bool { return !r.Ended && now.Sub(r.Updated) > lostAfter }

// Store keeps texts by name until they expire; cluster.Sessions is one.
type Store interface {
	Get(ctx context.Context, name string) (text, version string, err error)
	Create(ctx context.Context, name, text string, expires time.Time) (bool, error)
	Update(ctx context.Context, name, text string, expires time.Time, version string) (bool, error)
}

// Service starts runs. It is safe for concurrent use.
type Service struct {
	// Context ends the runs of the program.
	Context context.Context //nolint:containedctx // runs go on after the request that starts them
	Store   Store
	Log     *slog.Logger

	mu      sync.Mutex
	running map[string]*running
}

// running is a run of this replica.
type running struct {
	mu  sync.Mutex
	run Run
}

func (r *running) copied() Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run
	run.Items = slices.Clone(run.Items)
	return run
}

// As returns the user of a run before each of its changes; an error ends the run.
type As func(context.Context) (governance.User, error)

// Start starts a run and returns its ID: do changes item i. Items with a problem are left as
// they are. At most MaxItems are allowed.
func (s *Service) Start(ctx context.Context, as As, run Run, do func(ctx context.Context, user governance.User, i int) error) (id string, err error) {
	if len(run.Items) == 0 || len(run.Items) > MaxItems {
		return "", &governance.Error{Kind: governance.Invalid, Op: "start", Message: "Select between 1 and 1,000 objects."}
	}
	user, err := as(ctx)
	if err != nil {
		return "", err
	}
	run.ID, run.User, run.Updated = strings.ToLower(rand.Text()), user.Name, time.Now()
	text, err := json.Marshal(run)
	if err != nil {
		return "", err
	}
	if _, err := s.Store.Create(ctx, name(run.ID), string(text), time.Now().Add(kept)); err != nil {
		return "", err
	}
	r := &running{run: run}
	s.mu.Lock()
	if s.running == nil {
		s.running = map[string]*running{}
	}
	s.running[run.ID] = r
	s.mu.Unlock()
	go s.work(r, as, do)
	return run.ID, nil
}

func name(id string) string { return "bulk-" + id }

var ids = regexp.MustCompile(`^[a-z2-7]{26}$`)

// work changes the items, writes the record while it does, and once more at the end.
func (s *Service) work(r *running, as As, do func(context.Context, governance.User, int) error) {
	ctx, cancel := context.WithCancel(s.Context)
	defer cancel()
	items := r.copied().Items
	next := make(chan int)
	go func() {
		defer close(next)
		for i, item := range items {
			if item.Problem != "" {
				continue
			}
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				err := governance.Recovered(func() error {
					user, err := as(ctx)
					if err != nil {
						return err
					}
					return do(ctx, user, i)
				})
				if ctx.Err() != nil { // the program ends: it is not known what became of it
					return
				}
				r.mu.Lock()
				r.run.Items[i].Done, r.run.Items[i].Problem = err == nil, problem(err)
				r.mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		workers.Wait()
		close(ended)
	}()
	tick := time.NewTicker(saved)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.save(ctx, r)
			continue
		case <-ended:
		}
		break
	}
	r.mu.Lock()
	r.run.Ended = ctx.Err() == nil
	r.mu.Unlock()
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), saved)
	defer stop()
	s.save(last, r)
	time.AfterFunc(lostAfter, func() { // by then every replica has read the end
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, r.run.ID)
	})
}

// save writes the record of a run. What cannot be written now is written a second later.
func (s *Service) save(ctx context.Context, r *running) {
	r.mu.Lock()
	r.run.Updated = time.Now()
	text, err := json.Marshal(r.run)
	id := r.run.ID
	r.mu.Unlock()
	if err == nil {
		var version string
		if _, version, err = s.Store.Get(ctx, name(id)); err == nil {
			_, err = s.Store.Update(ctx, name(id), string(text), time.Now().Add(kept), version)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("progress of a change of many objects is not kept", "id", id, "error", err)
	}
}

// problem describes an error of one item.
func problem(err error) string {
	var ours *governance.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &ours) && ours.Kind != governance.Internal && ours.Message != "":
		text := ours.Message
		for _, wrong := range ours.Fields {
			text += " " + strings.TrimSpace(wrong.Path+" "+wrong.Message) + "."
		}
		return text
	}
	return "It failed. The log of the console has the reason."
}

// Get returns a run of a user; governance.NotFound for runs of others.
func (s *Service) Get(ctx context.Context, user governance.User, id string) (Run, error) {
	none := &governance.Error{Kind: governance.NotFound, Op: "read progress", Message: "There is no such change. Its progress is kept for a day."}
	if !ids.MatchString(id) {
		return Run{}, none
	}
	s.mu.Lock()
	r := s.running[id]
	s.mu.Unlock()
	var run Run
	if r != nil {
		run = r.copied()
	} else {
		text, _, err := s.Store.Get(ctx, name(id))
		if err != nil {
			return Run{}, err
		}
		if text == "" || json.Unmarshal([]byte(text), &run) != nil {
			return Run{}, none
		}
	}
	if run.User != user.Name {
		return Run{}, none
	}
	return run, nil
}
