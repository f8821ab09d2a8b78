package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// open returns a task that user may see, and a client that writes as user.
func (s *Service) open(ctx context.Context, user governance.User, at tasks.Address) (*tasks.Task, client.Client, error) {
	d, _, err := s.Tasks.Suppose(ctx, user, at)
	if err != nil {
		return nil, nil, err
	}
	writer, err := s.Cluster.ClientAs(user)
	return d.Task, writer, err
}

// spec is the part of an object that an audit entry shows.
type spec map[string]any

func merge(patch map[string]any) client.Patch {
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // names and flags always encode
	}
	return client.RawPatch(types.MergePatchType, text)
}

func changed(message string) error {
	return &governance.Error{Kind: governance.Conflict, Op: "act on task", Message: message}
}

// translate translates an error of a write. It keeps the messages of admission policies
// and of Kueue.
func translate(op string, t *tasks.Task, err error) error {
	if err == nil {
		return nil
	}
	wrong, ok := rejection.Fields(err)
	for _, w := range wrong {
		if w.Path == "metadata.uid" { // another object has the name
			return changed(fmt.Sprintf("%s was deleted and submitted again in between. Look at the new one before you change it.", t.Name))
		}
	}
	switch {
	case ok && len(wrong) > 0:
		texts := make([]string, len(wrong))
		for i, w := range wrong {
			texts[i] = w.Message
		}
		return &governance.Error{Kind: governance.Invalid, Op: op, Message: "It was refused: " + strings.Join(texts, "; ") + ".", Err: err}
	case apierrors.IsNotFound(err):
		return changed(fmt.Sprintf("%s %s was deleted meanwhile.", t.Kind, t.Name))
	case apierrors.IsConflict(err):
		return changed(fmt.Sprintf("%s was changed in between. Look at it again.", t.Name))
	case apierrors.IsForbidden(err):
		return &governance.Error{Kind: governance.Forbidden, Op: op, Message: "Kubernetes refused it: you may not do this, or the console may not do it for you. Nothing was changed.", Err: err}
	}
	return cluster.Translate(op, err)
}
