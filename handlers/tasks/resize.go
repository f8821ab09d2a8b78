package tasks

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	"k8s.io/utils/ptr"
)

// resizeForm is what a user typed into the form of an ElasticJob's sizes.
type resizeForm struct {
	fields     views.SizeFields
	reviewed   string // the sizes whose effects the user saw
	generation int64
}

// sizesForm returns the form with the current sizes of a task.
func sizesForm(r *actions.Resizing) resizeForm {
	text := func(n int32) string { return strconv.Itoa(int(n)) }
	f := resizeForm{generation: r.Generation, fields: views.SizeFields{
		Min: views.TextField{Value: text(r.Sizes.Min)}, Max: views.TextField{Value: text(r.Sizes.Max)}, Discrete: len(r.Sizes.Values) > 0,
	}}
	if !f.fields.Discrete {
		f.fields.Step.Value = text(r.Sizes.Step)
	}
	f.fields.Values.Value = listWords(r.Sizes.Values)
	fields, _ := actions.TimeFields()
	for _, field := range fields {
		t := timeWords[field]
		if field == actions.NodesField {
			f.fields.Timeout.Value = text(r.Sizes.Times[field])
			continue
		}
		f.fields.Times = append(f.fields.Times, views.TimeField{ID: string(field), Label: t.label, Hint: t.hint, TextField: views.TextField{Value: text(r.Sizes.Times[field])}})
	}
	f.fields.Asks, f.fields.NodesOpen = r.Sizes.Growth == v1alpha1.GrowthProvision, r.Sizes.Growth == v1alpha1.GrowthProvision
	if n := ptr.Deref(r.Sizes.MaxUnscheduled, 0); n > 0 {
		f.fields.Wait.Value = text(n)
	}
	f.fields.Scale.Value = forms.ScaleText(r.Sizes.Scale)
	return f
}

// timeWords are the words for the times of an ElasticJob.
var timeWords = map[actions.SizeField]struct{ label, hint string }{
	actions.GraceField:  {"Time to save", "From the signal until a pod that goes is killed. Pods that run keep theirs."},
	actions.IdleField:   {"Idle before growth", "For so long compute must have been idle."},
	actions.FaultyField: {"Patience with faulty pods", "Growth whose pods fail or find no node for so long is given up."},
	actions.StableField: {"Rest after shrinking", "It does not grow for so long after growth was taken back, and for twice as long each time."},
	actions.MostField:   {"Longest rest", "Whatever it has doubled to."},
	actions.NodesField:  {"Withdrawn after", "Growth that has no nodes by then is withdrawn."},
}

func listWords(sizes []int32) string {
	words := make([]string, len(sizes))
	for i, n := range sizes {
		words[i] = strconv.Itoa(int(n))
	}
	return strings.Join(words, ", ")
}

// typedSizes returns the form as typed for a task.
func typedSizes(values url.Values, r *actions.Resizing) resizeForm {
	f := sizesForm(r)
	f.fields.Min.Value, f.fields.Max.Value, f.fields.Step.Value, f.fields.Values.Value = values.Get("min"), values.Get("max"), values.Get("step"), values.Get("values")
	for i := range f.fields.Times {
		if t := &f.fields.Times[i]; values.Has(t.ID) {
			f.fields.TimesOpen = f.fields.TimesOpen || t.Value != values.Get(t.ID)
			t.Value = values.Get(t.ID)
		}
	}
	if values.Has("wait") { // the form was sent: a box that is not checked sends nothing
		f.fields.Asks, f.fields.Wait.Value, f.fields.Timeout.Value = values.Get("growth") != "", values.Get("wait"), values.Get("timeout")
		f.fields.NodesOpen = f.fields.NodesOpen || f.fields.Asks
	}
	if values.Has("scale") {
		typed := strings.ReplaceAll(values.Get("scale"), "\r\n", "\n")
		f.fields.ScaleOpen, f.fields.Scale.Value = f.fields.Scale.Value != typed, typed
	}
	f.reviewed = values.Get("reviewed")
	f.generation, _ = strconv.ParseInt(values.Get("generation"), 10, 64) // 0 is the generation of no object
	return f
}

// read returns the typed sizes. If some are wrong, it sets the errors of the fields and
// returns false.
func (f *resizeForm) read(r *actions.Resizing) (z actions.Sizes, ok bool) {
	errs := map[actions.SizeField]string{}
	number := func(field actions.SizeField, text, what string) int32 {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil {
			errs[field] = fmt.Sprintf("%s is a whole number, such as 8.", what)
		}
		return int32(n)
	}
	z.Min, z.Max = number(actions.MinField, f.fields.Min.Value, "The minimum"), number(actions.MaxField, f.fields.Max.Value, "The maximum")
	if f.fields.Discrete {
		for _, text := range strings.FieldsFunc(f.fields.Values.Value, func(c rune) bool { return c == ',' || c == ' ' }) {
			z.Values = append(z.Values, number(actions.ValuesField, text, "Each size"))
		}
		slices.Sort(z.Values)
		if len(z.Values) == 0 {
			errs[actions.ValuesField] = "List the allowed sizes, such as 4, 8, 16."
		}
	} else {
		z.Step = number(actions.StepField, f.fields.Step.Value, "The step")
	}
	z.Times = actions.Times{}
	for _, t := range f.fields.Times {
		z.Times[actions.SizeField(t.ID)] = number(actions.SizeField(t.ID), t.Value, "It")
	}
	z.Growth, z.MaxUnscheduled = v1alpha1.GrowthExistingNodes, new(int32(0))
	if f.fields.Asks {
		z.Growth = v1alpha1.GrowthProvision
	}
	if strings.TrimSpace(f.fields.Wait.Value) != "" {
		*z.MaxUnscheduled = number(actions.WaitField, f.fields.Wait.Value, "It")
	}
	z.Times[actions.NodesField] = number(actions.NodesField, f.fields.Timeout.Value, "It")
	if z.Scale = r.Sizes.Scale; f.fields.Scale.Value != sizesForm(r).fields.Scale.Value { // no line has a value of several lines, which kubectl can set
		var wrong []string
		if z.Scale, wrong = forms.ScaleConfig(f.fields.Scale.Value); len(wrong) > 0 {
			errs[actions.ScaleField] = format.Capitalize(wrong[0]) + "."
		}
	}
	if len(errs) == 0 {
		errs = z.Problems()
	}
	if z.Growth == v1alpha1.GrowthProvision && z.Growth != r.Sizes.Growth && r.Blocked != "" {
		errs[actions.GrowthField] = "It cannot ask for nodes: " + r.Blocked + "."
	}
	f.fields.AsksError, f.fields.Wait.Error, f.fields.Timeout.Error = errs[actions.GrowthField], errs[actions.WaitField], errs[actions.NodesField]
	f.fields.Min.Error, f.fields.Max.Error = errs[actions.MinField], errs[actions.MaxField]
	f.fields.Scale.Error = errs[actions.ScaleField]
	f.fields.Step.Error, f.fields.Values.Error = errs[actions.StepField], errs[actions.ValuesField]
	for i := range f.fields.Times {
		f.fields.Times[i].Error = errs[actions.SizeField(f.fields.Times[i].ID)]
	}
	return z, len(errs) == 0
}

// sizesKey identifies sizes whose effects a user saw. It is one line: browsers send other ends of
// lines than they got.
func sizesKey(z actions.Sizes) string {
	return fmt.Sprintf("%d-%d/%d/%s/%v/%s/%d/%q", z.Min, z.Max, z.Step, listWords(z.Values), z.Times, z.Growth, ptr.Deref(z.MaxUnscheduled, 0), forms.ScaleText(z.Scale))
}

// resizePage returns the page of a form. z are the sizes to preview; nil for none.
func (h *Pages) resizePage(c echo.Context, r actions.Review, f resizeForm, z *actions.Sizes) views.ActionPage {
	page := h.actionPage(c, r)
	page.Sizes, page.InPlace, page.Submit = &f.fields, forms.InPlace(c), "Review"
	page.Fields = append(page.Fields, views.HiddenField{Name: "generation", Value: strconv.FormatInt(f.generation, 10)})
	page.Effects = []string{sizeNow(r.Resizing)}
	if z != nil {
		page.Effects = append(page.Effects, resizeEffects(r.Resizing, *z)...)
		if !z.Equal(r.Resizing.Sizes) {
			page.Submit, page.Danger = actionNames[actions.Resize], r.Resizing.After(*z) < r.Resizing.Pods
			page.Fields = append(page.Fields, views.HiddenField{Name: "reviewed", Value: sizesKey(*z)})
		}
	}
	return page
}

// doResize answers POST: it shows the effects of the typed sizes, and sets them once the
// user has seen these.
func (h *Pages) doResize(c echo.Context, r actions.Review, at tasks.Address, values url.Values) error {
	if r.Obstacle != "" || r.Resizing == nil {
		return web.Render(c, http.StatusConflict, views.Action(h.actionPage(c, r)))
	}
	f := typedSizes(values, r.Resizing)
	z, ok := f.read(r.Resizing)
	if !ok {
		return web.Render(c, http.StatusUnprocessableEntity, views.Action(h.resizePage(c, r, f, nil)))
	}
	if f.reviewed != sizesKey(z) && f.generation == r.Resizing.Generation {
		return web.Render(c, http.StatusOK, views.Action(h.resizePage(c, r, f, &z)))
	}
	if err := h.Actions.Resize(c.Request().Context(), console.UserOf(c), at, z, f.generation); err != nil {
		f.generation = r.Resizing.Generation // what is shown now is reviewed next
		return refused(c, h.resizePage(c, r, f, &z), err)
	}
	return c.Redirect(http.StatusSeeOther, withDone(below(c, ""), actions.Resize))
}

// sizeNow describes the size of a task.
func sizeNow(r *actions.Resizing) string {
	switch {
	case r.State == v1alpha1.ElasticSuspended:
		return "It is stopped. Its sizes decide how it runs once it is resumed."
	case r.Pods == 0:
		return fmt.Sprintf("It waits for quota for its minimum of %s.", format.Count(int(r.Sizes.Min), "pod"))
	case r.Pods == r.Minimum:
		return fmt.Sprintf("It runs with its minimum of %s.", format.Count(int(r.Pods), "pod"))
	}
	return fmt.Sprintf("It runs with %s: %d of its minimum and %d of growth.", format.Count(int(r.Pods), "pod"), r.Minimum, r.Pods-r.Minimum)
}

// resizeEffects describes what other sizes do to a task.
func resizeEffects(r *actions.Resizing, z actions.Sizes) (list []string) {
	if z.Equal(r.Sizes) {
		return []string{"Nothing changes: these are its sizes."}
	}
	runs := r.Pods > 0
	left := r.Pods
	if runs {
		left = min(left, r.After(z))
	}
	if left < r.Pods {
		list = append(list, fmt.Sprintf("It shrinks from %d to %s: its newest growth ends at once. These pods have %s to write a checkpoint.", r.Pods, format.Count(int(left), "pod"), format.Count(int(r.Sizes.Times[actions.GraceField]), "second")))
	}
	switch {
	case !runs && z.Min != r.Sizes.Min && r.State != v1alpha1.ElasticSuspended:
		list = append(list, fmt.Sprintf("It waits for quota for %s instead of %d.", format.Count(int(z.Min), "pod"), r.Sizes.Min))
	case !runs || z.Min == r.Sizes.Min:
	case z.Min > r.Minimum:
		list = append(list, fmt.Sprintf("%s for quota in its priority class, and its growth makes room. It runs on meanwhile.", morePods(z.Min-r.Minimum)))
	default:
		if released := r.Minimum - max(z.Min, r.Base); released > 0 {
			list = append(list, fmt.Sprintf("Up to %s that a larger minimum had added end at once.", format.Count(int(released), "pod")))
		}
		if r.Base > z.Min {
			list = append(list, fmt.Sprintf("The %s that it started with stay until it loses its quota.", format.Count(int(r.Base), "pod")))
		}
	}
	switch {
	case z.Max > left && runs:
		list = append(list, fmt.Sprintf("It grows up to %s when compute was idle for %s.", format.Count(int(z.Max), "pod"), format.Count(int(z.Times[actions.IdleField]), "second")))
	case z.Max == z.Min:
		list = append(list, "It does not grow.")
	}
	if z.Max > r.Sizes.Max && runs {
		list = append(list, fmt.Sprintf("torchrun in its running pods was started for at most %d pods, and uses no more.", r.Sizes.Max))
	}
	list = append(list, timeEffects(r, z)...)
	list = append(list, growthEffects(r, z)...)
	if !z.SameScale(r.Sizes) {
		change := "The variables by size change"
		if runs {
			change += " when it starts again: until then all of its pods read those that it started with"
		}
		list = append(list, change+".")
	}
	if runs {
		list = append(list, "Its other pods are not restarted.")
	}
	return list
}

// timeEffects describes which times change, and from when on.
func timeEffects(r *actions.Resizing, z actions.Sizes) (list []string) {
	fields, _ := actions.TimeFields()
	for _, field := range fields {
		before, after := r.Sizes.Times[field], z.Times[field]
		if before == after {
			continue
		}
		change := fmt.Sprintf("%s: %s instead of %d", timeWords[field].label, format.Count(int(after), "second"), before)
		if field == actions.GraceField && r.Pods > 0 {
			change += ", in pods that start from now on"
		}
		list = append(list, change+".")
	}
	return list
}

// growthEffects describes what changes about asking for nodes.
func growthEffects(r *actions.Resizing, z actions.Sizes) (list []string) {
	most := "those of one step"
	if n := ptr.Deref(z.MaxUnscheduled, 0); n > 0 {
		most = format.Pods(n)
	}
	switch asks := z.Growth == v1alpha1.GrowthProvision; {
	case asks && (r.Sizes.Growth != z.Growth || !ptr.Equal(r.Sizes.MaxUnscheduled, z.MaxUnscheduled)):
		list = append(list, fmt.Sprintf("Its growth asks for nodes where its quota has room: at most %s wait for them at once.", most))
	case !asks && r.Sizes.Growth != z.Growth:
		list = append(list, "It grows only into nodes that exist. Growth that waits for nodes is withdrawn.")
	}
	return list
}

func morePods(n int32) string {
	if n == 1 {
		return "1 more pod waits"
	}
	return fmt.Sprintf("%s more pods wait", format.Thousands(int64(n)))
}
