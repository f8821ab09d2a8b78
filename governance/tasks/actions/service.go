package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Action is an action on a task.
type Action string

// The actions, as in their URLs.
const (
	Stop   Action = "stop"   // deactivates it, or scales it to 0: it loses its quota and leaves the queue
	Resume Action = "resume" // activates it, or scales it back: it waits in its queue again
	Scale  Action = "scale"  // sets the number of replicas of a service
	Front  Action = "front"  // sets the lowest priority class that moves it to the front
	Class  Action = "class"  // sets another priority class
	Resize Action = "resize" // sets other sizes of an ElasticJob
	Delete Action = "delete" // deletes the job
	Again  Action = "again"  // submits it again under another name: submit.Service does that
)

// Service reviews and executes actions. It is safe for concurrent use.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Tasks   *queries.Service
	Audit   *audit.Recorder
}

// applies reports whether the action applies to a task in its state.
func (a Action) applies(t *tasks.Task) bool {
	switch a {
	case Stop:
		return (!t.NoWorkload || t.IsServing()) && (t.State.UsesQuota() || t.State.Waiting())
	case Resume:
		_, held := t.Hold()
		return t.State == tasks.Stopped || held
	case Front:
		return !t.NoWorkload && t.State.Waiting()
	case Class: // with an existing class Kueue creates the missing Workload
		return !t.State.Finished() && (!t.NoWorkload || t.Queue != "" && t.State.Waiting())
	case Scale:
		return !t.State.Finished() && t.ScalesByReplica()
	case Resize:
		return !t.State.Finished() && t.Kind == v1alpha1.ElasticJobKind
	}
	return true
}

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
