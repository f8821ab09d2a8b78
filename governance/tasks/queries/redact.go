package queries

import (
	"context"
	"regexp"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// redactor has the names of queues and namespaces that a viewer may not see, and of
// the queues that they may.
type redactor struct {
	names map[string]bool
	own   map[string]bool
}

// newRedactor returns the redactor of a scope; nil if nothing is hidden. Kueue
// writes the queue of the preemptor into a condition (0.19), so its messages are
// redacted before they are shown.
func newRedactor(ctx context.Context, reader client.Reader, scope access.Scope, teams clusterstate.Teams) (*redactor, error) {
	if scope.All {
		return nil, nil
	}
	h := &redactor{names: map[string]bool{}, own: map[string]bool{}}
	for _, namespace := range teams.Namespaces() {
		if !scope.Includes(namespace) {
			h.names[namespace] = true
		}
	}
	queues, err := cluster.All[kueue.ClusterQueue](ctx, reader)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if name := q.Name; scope.Includes(teams.Namespace(teams.OfClusterQueue(name))) {
			h.own[name] = true
		} else {
			h.names[name] = true
		}
	}
	return h, nil
}

var (
	objectName = regexp.MustCompile(`[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?`)
	// preemptionPath matches the path that Kueue writes of both Workloads of a
	// preemption: cohorts, then the queue, which may be deleted by now.
	preemptionPath = regexp.MustCompile(`(path: (?:/[^/;\s]+)*/)([^/;\s]+)`)
)

const anotherTeam = "another team"

// Redactor returns a function that replaces the names that a scope may not see in
// messages of Kueue.
func (s *Service) Redactor(ctx context.Context, scope access.Scope) (func(text string) string, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	teams, err := clusterstate.ReadTeams(ctx, reader)
	if err != nil {
		return nil, err
	}
	names, err := newRedactor(ctx, reader, scope, teams)
	return names.redact, err
}

// redactWorkload replaces the hidden names in the messages of a Workload.
func (h *redactor) redactWorkload(w *kueue.Workload) {
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].Message = h.redact(w.Status.Conditions[i].Message)
	}
	for i := range w.Status.AdmissionChecks {
		w.Status.AdmissionChecks[i].Message = h.redact(w.Status.AdmissionChecks[i].Message)
	}
}

// redact replaces the hidden names in a text.
func (h *redactor) redact(text string) string {
	if h == nil {
		return text
	}
	text = preemptionPath.ReplaceAllStringFunc(text, func(found string) string {
		parts := preemptionPath.FindStringSubmatch(found)
		if h.own[parts[2]] {
			return found
		}
		return parts[1] + anotherTeam
	})
	return objectName.ReplaceAllStringFunc(text, func(word string) string {
		if h.names[word] {
			return anotherTeam
		}
		return word
	})
}
