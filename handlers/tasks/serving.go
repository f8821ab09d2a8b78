package tasks

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// replicaWords returns how many replicas of a serving task have quota; empty for any
// other task, and while it is stopped.
func replicaWords(t *tasks.Task) string {
	if !t.IsServing() || t.NoWorkload || t.State == tasks.Stopped {
		return ""
	}
	switch admitted, wanted := t.Replicas(); {
	case wanted == 1 && admitted == 1:
		return "1 replica has quota"
	case admitted == wanted:
		return fmt.Sprintf("%d replicas have quota", admitted)
	default:
		return fmt.Sprintf("%d of %d replicas have quota", admitted, wanted)
	}
}

// stoppedServingWords explains a stopped serving task.
func stoppedServingWords(t *tasks.Task) string {
	if t.StoppedReplicas > 0 {
		return fmt.Sprintf("It is scaled to 0. Resume it to scale it to %s again.", format.Count(int(t.StoppedReplicas), "replica"))
	}
	return "It has no pods: it is scaled to 0, or its pods are rejected. Resume it, or scale it with kubectl."
}

// stopServingEffects returns what stopping a serving task does to it.
func stopServingEffects(r actions.Review) string {
	text := "It is scaled to 0, and its pods end."
	if usage := format.Amounts(r.Usage); usage != "" {
		text += fmt.Sprintf(" It loses its %s.", usage)
	}
	return text
}

// resumeServingEffects returns what resuming a serving task does.
func resumeServingEffects(r actions.Review) []string {
	list := []string{fmt.Sprintf("It is scaled to %s.", format.Count(int(r.Replicas), "replica"))}
	switch {
	case r.StoppedReplicas == 0 && len(r.Parts) == 0:
		list[0] += " How many it had is not known: scale it with kubectl if you need more."
	case r.StoppedReplicas > 0:
		list[0] += " It had as many when it was stopped."
	}
	if r.Kind == "StatefulSet" {
		return append(list, "They wait in its queue, and start together.")
	}
	return append(list, "Each of them waits in its queue, and starts by itself.")
}

// scaleEffects returns what another number of replicas does to a service.
func scaleEffects(r actions.Review) []string {
	list := []string{fmt.Sprintf("It has %s.", format.Count(int(r.Replicas), "replica"))}
	switch words := replicaWords(r.Task); {
	case r.Replicas == 0:
		list[0] = "It is stopped, and has no replicas."
	case words != "":
		list[0] = fmt.Sprintf("It has %s: %s.", format.Count(int(r.Replicas), "replica"), words)
	}
	return append(list,
		"With more, each additional replica waits in its queue for quota, and starts by itself.",
		"With fewer, replicas that wait end first. What the others had not saved is lost.")
}

// doScale answers POST: it sets the typed number of replicas.
func (h *Pages) doScale(c echo.Context, r actions.Review, at tasks.Address, values url.Values) error {
	page := h.actionPage(c, r)
	if r.Obstacle != "" {
		return web.Render(c, http.StatusConflict, views.Action(page))
	}
	typed := strings.TrimSpace(values.Get("replicas"))
	saw, _ := strconv.ParseInt(values.Get("saw"), 10, 32)
	page.Number.Value = typed
	n, problem := forms.ParseWhole(typed, 1, submit.MaxReplicas)
	if problem != "" {
		if typed == "0" {
			problem = "must be at least 1; to scale it to 0, stop it"
		}
		page.Number.Error = format.Sentence(problem)
		return web.Render(c, http.StatusUnprocessableEntity, views.Action(page))
	}
	if err := h.Actions.Scale(c.Request().Context(), console.UserOf(c), at, int32(n), int32(saw)); err != nil {
		return refused(c, page, err)
	}
	return c.Redirect(http.StatusSeeOther, withDone(below(c, ""), actions.Scale))
}
