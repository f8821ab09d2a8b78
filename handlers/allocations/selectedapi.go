package allocations

import (
	"net/http"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// ManyRequest is an action on the allocations of several teams.
type ManyRequest struct {
	Action     string   `json:"action"` // hold, resume, weight, move or delete
	Teams      []string `json:"teams"`
	Weight     *int32   `json:"weight,omitempty"`     // for weight
	Department *string  `json:"department,omitempty"` // for move; empty for none
	Drain      bool     `json:"drain,omitempty"`      // for delete: requeues running tasks, which otherwise prevent it
	Reason     string   `json:"reason,omitempty"`     // for the versions and the activity
}

// ManyAnswer lists the teams of an action. Its progress is at /bulk/{id}.
type ManyAnswer struct {
	ID         string           `json:"id,omitempty"` // absent for a dry run
	Teams      []ManyTeam       `json:"teams"`
	Interrupts bool             `json:"interrupts"`       // running tasks, or it is not known whether it does
	Effect     *previews.Effect `json:"effect,omitempty"` // of a dry run
}

// ManyTeam is one team of an action.
type ManyTeam struct {
	Name     string `json:"name"`
	Running  int    `json:"running"` // tasks
	Waiting  int    `json:"waiting"`
	Obstacle string `json:"obstacle,omitempty"` // why it cannot be done to this team
}

// postMany answers POST /allocations/many.
func (h *Pages) postMany(c echo.Context) error {
	var request ManyRequest
	if err := web.ReadJSON(c, &request); err != nil {
		return err
	}
	s := teamSelection{target: target{weight: -1, department: request.Department}}
	var wrong governance.FieldErrors
	if w := request.Weight; w != nil {
		if s.weight = *w; *w < 0 || *w > v1alpha1.MaxWeight {
			wrong.Addf("weight", "is %d, want 0 to %d", *w, v1alpha1.MaxWeight)
		}
	}
	actions := teamActions(s.target)
	i := slices.IndexFunc(actions, func(a teamAction) bool { return a.value == request.Action })
	switch {
	case i < 0:
		wrong.Add("action", "is "+strconv.Quote(request.Action)+", want hold, resume, weight, move or delete")
	case (request.Action == changeWeight) != (request.Weight != nil):
		wrong.Add("weight", "goes with the action weight")
	case (request.Action == moveTeams) != (request.Department != nil):
		wrong.Add("department", "goes with the action move")
	case request.Drain && request.Action != deleteTeams:
		wrong.Add("drain", "goes with the action delete")
	}
	if n := len(request.Teams); n == 0 || n > bulk.MaxItems {
		wrong.Addf("teams", "has %d names, want 1 to %d", n, bulk.MaxItems)
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "change allocations", Message: "Some values are not valid.", Fields: wrong}
	}
	s.teamAction = actions[i]
	if err := h.may(c, s.may); err != nil {
		return err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	var err error
	if s.permissions, err = h.May(ctx, user); err != nil {
		return err
	}
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return err
	}
	s = selectTeams(state, s, map[string][]string{"team": request.Teams})
	if problem := s.moveProblem(state); problem != "" {
		wrong.Add("department", problem)
		return &governance.Error{Kind: governance.Invalid, Op: "change allocations", Message: "Some values are not valid.", Fields: wrong}
	}
	counts, err := h.Allocations.TaskCounts(ctx, user, s.teams)
	if err != nil {
		return err
	}
	answer := ManyAnswer{Teams: []ManyTeam{}}
	for _, name := range s.names() {
		answer.Teams = append(answer.Teams, ManyTeam{Name: name, Running: counts[name].Running, Waiting: counts[name].Waiting})
	}
	for _, e := range s.excluded {
		answer.Teams = append(answer.Teams, ManyTeam{Name: e.name, Obstacle: e.why})
	}
	for _, name := range request.Teams {
		if !slices.ContainsFunc(answer.Teams, func(t ManyTeam) bool { return t.Name == name }) {
			answer.Teams = append(answer.Teams, ManyTeam{Name: name, Obstacle: "There is no such team, or you may not see it."})
		}
	}
	if len(s.teams) == 0 {
		return c.JSON(http.StatusOK, answer)
	}
	if c.QueryParam("dryRun") == "true" {
		effect, interrupts := h.Previews.EffectOf(ctx, h.selectedVariant(user, s))
		answer.Effect, answer.Interrupts = &effect, interrupts
		return c.JSON(http.StatusOK, answer)
	}
	s.excluded = nil // the answer has them
	run, do := h.run(state, s, urls.Policies, request.Reason, func(string) bool { return request.Drain })
	if answer.ID, err = h.Bulk.Begin(c, run, do); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, answer)
}
