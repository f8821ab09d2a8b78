package actions

import (
	"context"
	"errors"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Right is what Kubernetes has to allow for an action.
type Permission struct {
	Verb      string
	Resource  string // as kubectl takes it, such as jobs or rayjobs.ray.io
	Namespace string
}

func (r Permission) String() string {
	return r.Verb + " " + r.Resource + " in namespace " + r.Namespace
}

// Offer is an action that means something to a task as it is.
type Offer struct {
	Action  Action
	Missing *Permission // that the person does not have; nil where they may
}

// Offers are the actions for a task, in the order in which pages show them.
// Whether the API server agrees is seen when they are done.
func (s *Service) Offers(ctx context.Context, user governance.User, d queries.Detail) (offers []Offer, err error) {
	t := d.Task
	for _, action := range []Action{Stop, Resume, Front, Class, Delete} {
		if !action.fits(t) || action.classes() && unclassed(t) != "" || action == Front && d.Position == 1 {
			continue
		}
		if len(objects(t)) == 0 {
			continue
		}
		missing, err := s.missing(ctx, user, t, action)
		switch {
		case meta.IsNoMatchError(errors.Unwrap(err)):
			continue // the kind of its job was taken out of the cluster
		case err != nil:
			return nil, err
		}
		offers = append(offers, Offer{Action: action, Missing: missing})
	}
	return offers, nil
}

// classes tells whether an action is a change of the class.
func (a Action) classes() bool { return a == Front || a == Class }

// missing is the right that somebody lacks for an action; nil for none.
func (s *Service) missing(ctx context.Context, user governance.User, t *tasks.Task, action Action) (*Permission, error) {
	verb, target := action.right(t)
	resource, err := s.resource(target)
	if err != nil {
		return nil, err
	}
	may, err := s.Access.May(ctx, user, verb, resource, t.Namespace)
	if err != nil || may {
		return nil, err
	}
	return &Permission{Verb: verb, Resource: called(resource), Namespace: t.Namespace}, nil
}

// right is the verb that an action needs, and the kind that it needs it on.
func (a Action) right(t *tasks.Task) (verb string, kind schema.GroupVersionKind) {
	switch a {
	case Stop, Resume:
		return "patch", workloadKind
	case Delete:
		return "delete", objects(t)[0].kind
	}
	return "patch", objects(t)[0].kind
}
