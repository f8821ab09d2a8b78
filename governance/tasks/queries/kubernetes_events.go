package queries

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Limits of reading a task's events.
const (
	eventsShown   = 50
	eventsRead    = 500 // of each object
	eventObjects  = 4   // the owner and the newest Workloads
	eventsTimeout = time.Second
)

// Notice is an event of Kubernetes about a task, merged with equal ones.
type Notice struct {
	At      time.Time // the last time
	Warning bool
	About   string // the kind of the object, such as Job
	Reason  string
	Text    string
	Count   int32
}

// Notices returns the newest events of Kubernetes about a task that user may see,
// at most 50. They are read as the user from the API server, which keeps them for
// about an hour: not for every change of a page. Errors are Forbidden and
// Unavailable.
func (s *Service) Notices(ctx context.Context, user governance.User, namespace, kind, name, uid string) ([]Notice, error) {
	v, t, err := s.find(ctx, user, namespace, kind, name, uid)
	if err != nil {
		return nil, err
	}
	reader, err := s.Cluster.ReaderAs(user)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	about := []string{t.UID}
	for _, w := range t.Parts {
		if uid := string(w.UID); uid != t.UID && len(about) < eventObjects {
			about = append(about, uid)
		}
	}
	lists := make([]corev1.EventList, len(about))
	group, ctx := errgroup.WithContext(ctx)
	for i, uid := range about {
		group.Go(func() error {
			return reader.List(ctx, &lists[i], client.InNamespace(t.Namespace), client.MatchingFields{"involvedObject.uid": uid}, client.Limit(eventsRead))
		})
	}
	if err := group.Wait(); err != nil {
		return nil, cluster.Translate("list events", err)
	}
	var notices []Notice
	for i := range lists {
		for j := range lists[i].Items {
			notices = append(notices, v.notice(&lists[i].Items[j]))
		}
	}
	return deduplicated(notices), nil
}

// deduplicated merges equal notices and sorts them, the newest first.
func deduplicated(notices []Notice) []Notice {
	at := map[Notice]int{}
	var found []Notice
	for _, n := range notices {
		key := n
		key.At, key.Count = time.Time{}, 0
		i, known := at[key]
		if !known {
			at[key] = len(found)
			found = append(found, n)
			continue
		}
		found[i].Count += n.Count
		if n.At.After(found[i].At) {
			found[i].At = n.At
		}
	}
	slices.SortStableFunc(found, func(a, b Notice) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.About, b.About), strings.Compare(a.Reason, b.Reason))
	})
	return found[:min(len(found), eventsShown)]
}

func (v viewer) notice(e *corev1.Event) Notice {
	n := Notice{
		At: slices.MaxFunc([]time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time}, time.Time.Compare), Warning: e.Type == corev1.EventTypeWarning,
		About: e.InvolvedObject.Kind, Reason: e.Reason, Text: v.names.redact(v.redactWorkloads(e.Message)), Count: max(1, e.Count),
	}
	if s := e.Series; s != nil {
		n.At, n.Count = slices.MaxFunc([]time.Time{n.At, s.LastObservedTime.Time}, time.Time.Compare), max(n.Count, s.Count)
	}
	return n
}

// ofWorkloads matches namespace and name of Workloads in messages of Kueue (0.19)
// about preemption.
var ofWorkloads = regexp.MustCompile(`(?i)\b(workload )([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9][-.a-z0-9]*[a-z0-9])`)

// redactWorkloads replaces the names of tasks that the viewer may not see; redact
// replaces those of queues and namespaces.
func (v viewer) redactWorkloads(text string) string {
	if v.scope.All {
		return text
	}
	return ofWorkloads.ReplaceAllStringFunc(text, func(found string) string {
		parts := ofWorkloads.FindStringSubmatch(found)
		if v.seesNamespace(parts[2]) {
			return found
		}
		return parts[1] + "of " + anotherTeam
	})
}
