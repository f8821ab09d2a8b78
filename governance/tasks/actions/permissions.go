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
	verb, target := action.permission(t)
	resource, err := s.resource(target)
	if err != nil {
		return nil, err
	}
	if action.scales(t) {
		resource.Resource += "/scale"
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

// permission returns the verb and the kind of the permission that an action needs.
func (a Action) permission(t *tasks.Task) (verb string, kind schema.GroupVersionKind) {
	_, held := t.Hold()
	switch {
	case (a == Stop || a == Resume) && t.Kind == v1alpha1.ElasticJobKind && !held:
		return "patch", objects(t)[0].kind
	case a.scales(t): // the subresource
		return "patch", objects(t)[0].kind
	case a == Stop, a == Resume:
		return "patch", workloadKind
	case a == Delete:
		return "delete", objects(t)[0].kind
	}
	return "patch", objects(t)[0].kind
}
