package allocations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/previews"
	allocationviews "kuota.dev/kuota/views/allocations"

	"github.com/labstack/echo/v4"
)

// effectLimit is how long a page or a save waits for the simulation of what was typed.
const effectLimit = 3 * time.Second

// effect returns what saving the form does. The simulation is asked where the form asks for
// it; until then, the page does so shortly after the last key.
func (h *Pages) effect(c echo.Context, form *allocationForm, state allocations.State) (view allocationviews.Effect) {
	wanted, wrong := form.parse(state.Types.With(form.newPools()...))
	missing := form.missing()
	switch {
	case form.edits == nil && len(missing) > 0:
		view.Text = "Name the team and give it quota: then this is what saving does to tasks and teams."
	case len(wrong)+len(missing) > 0 || len(form.byCRD(wanted)) > 0:
		view.Text = "Some values are not valid yet."
	case form.edits != nil && len(describe.AllocationChanges(&form.edits.allocation.Spec, &wanted.Spec)) == 0:
		view.Text = "Nothing is changed yet."
	case h.Previews.Backend == nil:
		view.Text = "Effects on running tasks are not simulated here."
	case !form.verify:
		view.Verify = true
	default:
		ctx, cancel := context.WithTimeout(c.Request().Context(), effectLimit)
		defer cancel()
		wanted.ResourceVersion = form.Version
		var preview queries.Preview
		view.Preview = previews.Compute(ctx, previews.Variant{Key: "typed", Preview: func(ctx context.Context) (_ queries.Preview, err error) {
			preview, err = h.Previews.Backend.Typed(ctx, console.UserOf(c), wanted, form.newPools())
			return preview, err
		}})
		view.Shown = form.fingerprint(preview)
	}
	return view
}

// Reasons not to save at once, as hidden values of the form.
const (
	askedInterrupts = "interrupts" // running tasks
	askedUnknown    = "unknown"    // whether it interrupts any
	askedChanged    = "changed"    // what saving does has changed since it was shown
)

// ask returns why saving has to be confirmed; empty if it need not.
func (h *Pages) ask(ctx context.Context, user governance.User, form *allocationForm, wanted *v1alpha1.ComputeAllocation, review allocations.Review) string {
	if len(review.Evicted)+len(review.Unadmittable) > 0 {
		return askedInterrupts
	}
	if h.Previews.Backend == nil {
		return askedUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, effectLimit)
	defer cancel()
	var preview queries.Preview
	err := governance.Recovered(func() (err error) {
		preview, err = h.Previews.Backend.Typed(ctx, user, wanted, form.newPools())
		return err
	})
	switch {
	case err != nil || review.Unknown != "":
		return askedUnknown
	case affects(preview.Preempted) || affects(preview.Evicted):
		return askedInterrupts
	case differ(form.shown, form.fingerprint(preview)):
		return askedChanged
	}
	return ""
}

// affects reports whether any task has the effect, and would not have it anyway.
func affects(e queries.Effects) bool {
	for _, t := range e.Listed {
		if !t.Anyway {
			return true
		}
	}
	return e.More > 0 || e.Others != nil
}

// fingerprint identifies what was typed, and the objects that saving changes.
func (f *allocationForm) fingerprint(p queries.Preview) string {
	values := f.values()
	for _, name := range []string{"version", "generation", "shown", "asked", "reason", "submitted", "resumed", "request-id"} {
		values.Del(name)
	}
	objects, _ := json.Marshal(p.Objects) // it has texts only
	typed, changes := sha256.Sum256([]byte(values.Encode())), sha256.Sum256(objects)
	return url.Values{"typed": {hex.EncodeToString(typed[:8])}, "objects": {hex.EncodeToString(changes[:8])}}.Encode()
}

// differ reports whether two fingerprints of the same typed values have different objects.
func differ(shown, now string) bool {
	before, _ := url.ParseQuery(shown)
	after, _ := url.ParseQuery(now)
	return before.Get("typed") == after.Get("typed") && before.Get("objects") != after.Get("objects")
}
