package tasks

import (
	"context"
	"regexp"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// hidden are the names of queues and namespaces that somebody may not see.
type hidden map[string]bool

// hiddenFrom lists what is hidden from somebody with this scope. Kueue writes
// the queue of whoever pre-empted a task into its condition (0.19), so texts
// are read with it before they are shown.
func hiddenFrom(ctx context.Context, reader client.Reader, scope access.Scope, teams map[string]string) (hidden, error) {
	if scope.All {
		return nil, nil
	}
	names, own := hidden{}, map[string]bool{}
	for namespace, team := range teams {
		if scope.Sees(namespace) {
			own[team] = true
		} else {
			names[namespace] = true
		}
	}
	var queues kueue.ClusterQueueList
	if err := reader.List(ctx, &queues, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list queues", err)
	}
	for i := range queues.Items {
		if team := queues.Items[i].Labels[desired.LabelTeam]; team == "" || !own[team] {
			names[queues.Items[i].Name] = true
		}
	}
	return names, nil
}

var name = regexp.MustCompile(`[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?`)

// redact takes the hidden names out of a text.
func (h hidden) redact(text string) string {
	if len(h) == 0 {
		return text
	}
	return name.ReplaceAllStringFunc(text, func(word string) string {
		if h[word] {
			return "another team"
		}
		return word
	})
}
