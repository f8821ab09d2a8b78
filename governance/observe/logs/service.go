package logs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// MaxOpen is how many logs one user may have open.
	MaxOpen = 10
	// searched is how many of the last lines are searched for a text.
	searched = 50_000
)

// Query selects a log.
type Query struct {
	Task       tasks.Address
	Pod        string
	Container  string // empty, or none of the pod: the first that is no init container
	Previous   bool   // of the run of the container before its last restart
	Timestamps bool   // each line with its time
	Contains   string // only lines that contain this text, whatever their case; empty for all
	Wait       bool   // for Open: until the container ends
}

// Service opens logs.
type Service struct {
	// Cluster opens a log as user.
	Cluster interface {
		LogAs(ctx context.Context, user governance.User, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)
	}
	// Access reports what user can see and read in a namespace.
	Access interface {
		CanSee(ctx context.Context, user governance.User, namespace string) (bool, error)
		MayReadLogs(ctx context.Context, user governance.User, namespace string) (bool, error)
	}
	// Tasks returns the pods of a task that user can see.
	Tasks interface {
		Pods(ctx context.Context, user governance.User, at tasks.Address) ([]*index.Pod, error)
	}

	mu   sync.Mutex
	open map[string]int // logs by user

	progress progressCache
}

// Pods returns the pods of a task that user can see, by name.
func (s *Service) Pods(ctx context.Context, user governance.User, at tasks.Address) ([]*index.Pod, error) {
	return s.Tasks.Pods(ctx, user, at)
}

// May reports whether user can read the logs of a namespace.
func (s *Service) May(ctx context.Context, user governance.User, namespace string) (bool, error) {
	return s.Access.MayReadLogs(ctx, user, namespace)
}

// check returns an error unless user can see the tasks of a namespace and read its
// logs.
func (s *Service) check(ctx context.Context, user governance.User, namespace string) error {
	sees, err := s.Access.CanSee(ctx, user, namespace)
	if err != nil {
		return err
	}
	may, err := s.May(ctx, user, namespace)
	if err == nil && !(sees && may) {
		err = forbidden(namespace)
	}
	return err
}

// find returns the pod of a query, and the query with the name of its container.
func (s *Service) find(ctx context.Context, user governance.User, q Query) (*index.Pod, Query, error) {
	pods, err := s.Pods(ctx, user, q.Task)
	if err != nil {
		return nil, q, err
	}
	i := slices.IndexFunc(pods, func(p *index.Pod) bool { return p.Name == q.Pod })
	if i < 0 {
		return nil, q, podDeleted()
	}
	pod := pods[i]
	initial, main := pod.Containers()
	if !slices.Contains(initial, q.Container) && !slices.Contains(main, q.Container) && len(main) > 0 {
		q.Container = main[0]
	}
	return pod, q, nil
}

// openLog opens a log as user: of the last lines for lines above 0, else of all.
func (s *Service) openLog(ctx context.Context, user governance.User, q Query, lines int64, follow bool) (io.ReadCloser, *index.Pod, error) {
	pod, q, err := s.find(ctx, user, q)
	if err != nil {
		return nil, pod, err
	}
	if err := s.check(ctx, user, q.Task.Namespace); err != nil {
		return nil, pod, err
	}
	if pod.Node == "" {
		return nil, pod, &governance.Error{Kind: governance.NotFound, Op: "read log", Message: "The pod has no node yet, so it has written nothing."}
	}
	free, err := s.reserve(user)
	if err != nil {
		return nil, pod, err
	}
	options := &corev1.PodLogOptions{Container: q.Container, Previous: q.Previous, Timestamps: q.Timestamps, Follow: follow}
	if lines > 0 {
		options.TailLines = ptr.To(lines)
	}
	log, err := s.Cluster.LogAs(ctx, user, pod.Namespace, pod.Name, options)
	if err != nil {
		free()
		return nil, pod, explain(err, q, pod)
	}
	return &openLog{ReadCloser: log, free: sync.OnceFunc(free)}, pod, nil
}

// openLog counts as an open log of its reader until it is closed.
type openLog struct {
	io.ReadCloser
	free func()
}

// Close implements io.Closer.
func (o *openLog) Close() error {
	o.free()
	return o.ReadCloser.Close()
}

// reserve counts a log that user opens, until free is called.
func (s *Service) reserve(user governance.User) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[user.Name] >= MaxOpen {
		return nil, &governance.Error{Kind: governance.Conflict, Op: "read log", Message: fmt.Sprintf("You have %d logs open, which is the limit. Close one of them.", MaxOpen)}
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[user.Name]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[user.Name]--; s.open[user.Name] == 0 {
			delete(s.open, user.Name)
		}
	}, nil
}

// Open opens a log from its first line, as the container wrote it. The caller closes
// it.
func (s *Service) Open(ctx context.Context, user governance.User, q Query) (io.ReadCloser, error) {
	log, _, err := s.openLog(ctx, user, q, 0, q.Wait)
	return log, err
}

// Read returns the last lines of a log.
func (s *Service) Read(ctx context.Context, user governance.User, q Query) (Update, error) {
	tail, pod, err := s.tail(ctx, user, q, false)
	if err != nil {
		return Update{}, err
	}
	defer tail.Close()
	batch, err := tail.All(ctx)
	if err != nil {
		return Update{}, explain(err, q, pod)
	}
	update := Update{Reset: true, Batch: batch}
	if q.Previous {
		return update, nil
	}
	update.Note, _ = ending(pod, pod, q.Container)
	return update, nil
}

func (s *Service) tail(ctx context.Context, user governance.User, q Query, follow bool) (*Tail, *index.Pod, error) {
	lines := int64(maxLines)
	if q.Contains != "" {
		lines = searched
	}
	log, pod, err := s.openLog(ctx, user, q, lines, follow)
	if err != nil {
		return nil, pod, err
	}
	return newTail(log, q.Contains, q.Timestamps), pod, nil
}

// Intervals of Follow.
const (
	// recheck is how often the permission of a reader is checked.
	recheck = 5 * time.Second
	// endingPatience is how long the index may take to show why a log ended.
	endingPatience = 5 * time.Second
	endingPoll     = 500 * time.Millisecond
)

// Update is what changes on the page of a log.
type Update struct {
	Reset bool // Batch replaces all lines before
	Batch
	Note  string // why there is no log, or no more of it; empty while it is followed
	Clear bool   // the reader may not read it any more: no line remains
}

// Follow sends the last lines of a log and then what the container writes, until ctx
// ends or send returns an error. A log that cannot be opened is tried again. While send
// blocks, lines are skipped. When the log has ended, it sends why.
func (s *Service) Follow(ctx context.Context, user governance.User, q Query, send func(Update) error) error {
	note := "" // that was sent last
	say := func(u Update) error {
		if u.Note == note && !u.Clear && len(u.Lines) == 0 && !u.Reset {
			return nil
		}
		note = u.Note
		return send(u)
	}
	var opened *index.Pod // whose log has ended
	for {
		var update Update
		if opened == nil {
			ended, err := s.follow(ctx, user, q, say)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				opened = ended
				continue
			}
			update = failed(err)
		} else {
			words, over, err := s.ending(ctx, user, q, opened)
			switch update = (Update{Note: words}); {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				update = failed(err)
			case !over:
				opened = nil // such as after a restart of the kubelet
				continue
			}
		}
		if err := say(update); err != nil {
			return err
		}
		if err := governance.Sleep(ctx, recheck); err != nil {
			return err
		}
	}
}

// failed returns what a reader sees of a log that cannot be read.
func failed(err error) Update {
	kind := governance.KindOf(err)
	return Update{Note: Sentence(err), Clear: kind == governance.Forbidden || kind == governance.Outside}
}

// follow sends a log until it ends, and returns the pod as it was when the log was
// opened.
func (s *Service) follow(ctx context.Context, user governance.User, q Query, send func(Update) error) (*index.Pod, error) {
	tail, pod, err := s.tail(ctx, user, q, true)
	if err != nil {
		return nil, err
	}
	defer tail.Close()
	checked := time.Now()
	for first := true; ; first = false {
		batch, err := tail.Next(ctx, recheck)
		if err != nil {
			if first { // it is empty
				_ = send(Update{Reset: true})
			}
			return pod, ctx.Err() // the log ended, whatever the reason
		}
		if time.Since(checked) >= recheck || len(batch.Lines) == 0 {
			if err := s.check(ctx, user, q.Task.Namespace); err != nil {
				return nil, err
			}
			checked = time.Now()
		}
		if err := send(Update{Reset: first, Batch: batch}); err != nil {
			return nil, err
		}
	}
}

// ending waits until the index shows why a log ended, and returns that. over is false if
// the container still runs.
func (s *Service) ending(ctx context.Context, user governance.User, q Query, opened *index.Pod) (words string, over bool, err error) {
	if err := s.check(ctx, user, q.Task.Namespace); err != nil {
		return "", false, err
	}
	for until := time.Now().Add(endingPatience); ; {
		pod, named, err := s.find(ctx, user, q)
		switch {
		case governance.KindOf(err) == governance.NotFound:
			return deletedNote, true, nil
		case err != nil:
			return "", false, err
		}
		if words, over = ending(opened, pod, named.Container); over || time.Now().After(until) {
			return words, over, nil
		}
		if err := governance.Sleep(ctx, endingPoll); err != nil {
			return "", false, err
		}
	}
}
