package actions

import (
	"context"
	"errors"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permission is a permission in Kubernetes that an action needs.
type Permission struct {
	Verb      string
	Resource  string // as for kubectl, such as jobs or rayjobs.ray.io
	Namespace string
}

func (r Permission) String() string {
	return r.Verb + " " + r.Resource + " in namespace " + r.Namespace
}

// Offer is an action that applies to a task in its current state.
type Offer struct {
	Action  Action
	Missing *Permission // permission that the user lacks; nil for none
}

// Offers returns the actions that apply to a task, in the order of pages. Admission
// can still refuse them.
func (s *Service) Offers(ctx context.Context, user governance.User, d queries.Detail) (offers []Offer, err error) {
	t := d.Task
	for _, action := range []Action{Stop, Resume, Scale, Resize, Front, Class, Delete} {
		if !action.applies(t) || action.changesClass() && classFixed(t) != "" || action == Front && d.Position == 1 {
			continue
		}
		if len(objects(t)) == 0 {
			continue
		}
		missing, err := s.missing(ctx, user, t, action)
		switch {
		case meta.IsNoMatchError(errors.Unwrap(err)):
			continue // the cluster no longer serves the kind of its job
		case err != nil:
			return nil, err
		}
		offers = append(offers, Offer{Action: action, Missing: missing})
	}
	return offers, nil
}

// MayStop reports whether user can stop a task, which exists only for users who see it.
func (s *Service) MayStop(ctx context.Context, user governance.User, at tasks.Address) (bool, error) {
	t := s.Tasks.Index.Find(at.Namespace, at.Kind, at.Name, at.UID)
	if t == nil || !Stop.applies(t) || len(objects(t)) == 0 {
		return false, nil
	}
	missing, err := s.missing(ctx, user, t, Stop)
	return err == nil && missing == nil, err
}

// changesClass reports whether the action changes the priority class.
func (a Action) changesClass() bool { return a == Front || a == Class }

// missing returns the permission that user lacks for an action; nil for none.
func (s *Service) missing(ctx context.Context, user governance.User, t *tasks.Task, action Action) (*Permission, error) {
	verb, resource, err := s.permission(action, t)
	if err != nil {
		return nil, err
	}
	may, err := s.Access.May(ctx, user, verb, resource, t.Namespace)
	if err != nil || may {
		return nil, err
	}
	return &Permission{Verb: verb, Resource: kubectlName(resource), Namespace: t.Namespace}, nil
}

// scales reports whether the action scales a serving task.
func (a Action) scales(t *tasks.Task) bool {
	return (a == Stop || a == Resume || a == Scale) && t.IsServing()
}

// permission returns the verb and the resource of the permission that an action needs. It
// returns governance.Unavailable if the cluster does not serve the resource.
func (s *Service) permission(a Action, t *tasks.Task) (verb string, resource schema.GroupVersionResource, err error) {
	verb, kind := "patch", objects(t)[0].kind
	_, held := t.Hold()
	switch elastic := t.Kind == v1alpha1.ElasticJobKind && !held; {
	case a == Delete:
		verb = "delete"
	case (a == Stop || a == Resume) && !elastic && !t.IsServing():
		kind = workloadKind
	}
	mapping, err := s.mapping(kind)
	if err != nil {
		return "", resource, err
	}
	if resource = mapping.Resource; a.scales(t) {
		resource.Resource += "/scale"
	}
	return verb, resource, nil
}
