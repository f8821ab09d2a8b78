package previews

import (
	"context"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Backend previews changes.
type Backend interface {
	Allocation(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (queries.Preview, error)
	Allocations(ctx context.Context, user governance.User, allocations []*v1alpha1.ComputeAllocation) (queries.Preview, error)
	Typed(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (queries.Preview, error)
	Department(ctx context.Context, user governance.User, department *v1alpha1.Department) (queries.Preview, error)
	TypedDepartment(ctx context.Context, user governance.User, department *v1alpha1.Department) (queries.Preview, error)
	DepartmentDeletion(ctx context.Context, user governance.User, name string) (queries.Preview, error)
	Activation(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, to v1alpha1.Activation) (queries.Preview, error)
	Deletion(ctx context.Context, user governance.User, teams ...string) (queries.Preview, error)
	Policy(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) (queries.Preview, error)
	Action(ctx context.Context, user governance.User, action actions.Action, list []*tasks.Task, class string) (queries.Preview, error)
}

// Previews are the previews of pages.
type Previews struct {
	*console.Console
	Backend Backend // nil previews nothing
}

// Variant is one change that a page previews.
type Variant struct {
	Key, Title string // of views.PreviewVariant
	Preview    func(context.Context) (queries.Preview, error)
}

// inPlace is how long a page waits for a preview that it does not stream: the values of
// the form do not fit into the address of the stream.
const inPlace = 3 * time.Second

// For returns the part of the review of a form: one whose stream follows below the
// address of this request, which has the values of the form.
func (p *Previews) For(c echo.Context, chrome *views.Chrome, variants ...Variant) views.Preview {
	if forms.InPlace(c) {
		return p.Now(c.Request().Context(), variants...)
	}
	address := *c.Request().URL
	address.Path += "/events"
	return p.At(chrome, address.RequestURI(), variants...)
}

// At returns the part of a page whose stream follows at address, and sets the page's
// stream.
func (p *Previews) At(chrome *views.Chrome, address string, variants ...Variant) (part views.Preview) {
	if p.Backend == nil {
		return part
	}
	chrome.Stream = address
	return computing(variants)
}

func computing(variants []Variant) (part views.Preview) {
	for _, v := range variants {
		part.Variants = append(part.Variants, views.PreviewVariant{Key: v.Key, Title: v.Title, State: views.PreviewComputing})
	}
	return part
}

// Now computes previews and waits for them for some seconds.
func (p *Previews) Now(ctx context.Context, variants ...Variant) (part views.Preview) {
	if p.Backend == nil {
		return part
	}
	ctx, cancel := context.WithTimeout(ctx, inPlace)
	defer cancel()
	part = computing(variants)
	var computed sync.WaitGroup
	for i, v := range variants {
		computed.Go(func() {
			part.Variants[i] = compute(ctx, v)
			part.Variants[i].Once = true
		})
	}
	computed.Wait()
	return part
}

// Once computes a preview, for as long as a page may wait for it. The preview is empty where
// the variant is not verified.
func (p *Previews) Once(ctx context.Context, v Variant) (variant views.PreviewVariant, preview queries.Preview) {
	ctx, cancel := context.WithTimeout(ctx, inPlace)
	defer cancel()
	of := v.Preview
	v.Preview = func(ctx context.Context) (_ queries.Preview, err error) {
		preview, err = of(ctx)
		return preview, err
	}
	return compute(ctx, v), preview
}

// Interrupts reports whether a change stops running tasks that would go on without it.
func Interrupts(p queries.Preview) bool { return affects(p.Preempted) || affects(p.Evicted) }

// affects reports whether any task has the effect, and would not have it anyway.
func affects(e queries.Effects) bool {
	return e.More > 0 || e.Others != nil || slices.ContainsFunc(e.Listed, func(t queries.TaskEffect) bool { return !t.Anyway })
}

// Stream answers the stream of a page with its previews, each when it is computed. It
// sends nothing before the first: a page that reconnects keeps what it shows.
func (p *Previews) Stream(s *web.Server, c echo.Context, variants ...Variant) error {
	if p.Backend == nil {
		return echo.ErrNotFound
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	var mu sync.Mutex
	part, ready, changed := computing(variants), false, make(chan struct{}, 1)
	for i, v := range variants {
		go func() {
			done := compute(ctx, v)
			mu.Lock()
			part.Variants[i], ready = done, true
			mu.Unlock()
			select {
			case changed <- struct{}{}:
			default: // the last one is not rendered yet
			}
		}()
	}
	return s.Stream(c, web.Part{
		Changed: func(context.Context) <-chan struct{} { return changed },
		Render: func(context.Context) (templ.Component, error) {
			mu.Lock()
			defer mu.Unlock()
			if !ready {
				return templ.NopComponent, nil
			}
			shown := views.Preview{Variants: append([]views.PreviewVariant(nil), part.Variants...)}
			return views.PreviewPart(shown), nil
		},
	}, p.Frame(c))
}

// compute returns a preview, or the reason why there is none. It recovers from
// panics: no middleware runs in its goroutine.
func compute(ctx context.Context, v Variant) (view views.PreviewVariant) {
	view = views.PreviewVariant{Key: v.Key, Title: v.Title, State: views.PreviewUnverified, Failure: "The simulation failed."}
	_ = governance.Recovered(func() error {
		preview, err := v.Preview(ctx)
		if err != nil {
			view.Failure = failure(ctx, err)
			return err
		}
		view = variant(view, preview)
		return nil
	})
	return view
}
