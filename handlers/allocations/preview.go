package allocations

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// saveVariant returns the preview of saving an allocation.
func (h *Pages) saveVariant(user governance.User, wanted *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) previews.Variant {
	return previews.Variant{Key: "save", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.Allocation(ctx, user, wanted, pools)
	}}
}

// saving returns the preview of saving a form; typed is that while it is typed.
func (h *Pages) saving(user governance.User, form *allocationForm, wanted *v1alpha1.ComputeAllocation, typed bool) previews.Variant {
	if form.kind == ofTeam && !typed {
		return h.saveVariant(user, wanted, form.newPools())
	}
	return previews.Variant{Key: "save", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		switch {
		case form.kind == ofTeam:
			return h.Previews.Backend.Typed(ctx, user, wanted, form.newPools())
		case typed:
			return h.Previews.Backend.TypedDepartment(ctx, user, form.departmentOf(wanted))
		}
		return h.Previews.Backend.Department(ctx, user, form.departmentOf(wanted))
	}}
}

// previewDepartment answers the stream of the review of a department.
func (h *Pages) previewDepartment(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		path := urls.NewDepartment
		if name := c.Param("name"); name != "" {
			path = urls.EditDepartment(name)
		}
		values, _ := h.TypedValues(c, path)
		if values == nil {
			return echo.ErrNotFound
		}
		form, state, err := h.readDepartment(c, values)
		if err != nil {
			return err
		}
		form.do(forms.ActionReview, state.Types)
		wanted, _ := form.parse(state.Types)
		wanted.ResourceVersion = form.Version
		return h.Previews.Stream(s, c, h.saving(console.UserOf(c), &form, wanted, false))
	}
}

// previewReview answers the stream of a review: the preview of the values in its
// address.
func (h *Pages) previewReview(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		ctx, user, team := c.Request().Context(), console.UserOf(c), c.Param("name")
		path, access := urls.NewAllocation, toCreate
		if team != "" {
			path, access = editURL(team), toUpdate
		}
		if err := h.mayDo(c, access); err != nil {
			return err
		}
		values, _ := h.TypedValues(c, path)
		if values == nil {
			return echo.ErrNotFound
		}
		form := readForm(ofTeam, values)
		if team != "" {
			now, err := h.Allocations.Find(ctx, user, team)
			if err != nil {
				return err
			}
			form.changes(edit(now))
		}
		state, err := h.Allocations.State(ctx, user)
		if err != nil {
			return err
		}
		form.do(forms.ActionReview, state.Types)
		wanted, _ := form.parse(state.Types.With(form.newPools()...))
		wanted.ResourceVersion = form.Version
		return h.Previews.Stream(s, c, h.saveVariant(user, wanted, form.newPools()))
	}
}

// activationVariants returns the previews of holding or resuming a queue: one for each
// choice about running tasks.
func (h *Pages) activationVariants(user governance.User, now v1alpha1.ComputeAllocation, to v1alpha1.Activation, running bool) []previews.Variant {
	variant := func(key, title string, to v1alpha1.Activation) previews.Variant {
		return previews.Variant{Key: key, Title: title, Preview: func(ctx context.Context) (queries.Preview, error) {
			return h.Previews.Backend.Activation(ctx, user, &now, to)
		}}
	}
	switch {
	case to == v1alpha1.Active:
		return []previews.Variant{variant("resume", "Effect on tasks and teams", to)}
	case !running:
		return []previews.Variant{variant("hold", "Effect on tasks and teams", to)}
	}
	return []previews.Variant{variant("hold", "If running tasks continue", v1alpha1.Hold), variant("drain", "If running tasks are stopped", v1alpha1.Drain)}
}

// previewActivation answers the stream of the page that holds or resumes a queue.
func (h *Pages) previewActivation(s *web.Server, to v1alpha1.Activation) func(echo.Context) error {
	return func(c echo.Context) error {
		now, page, err := h.activationPage(c, to)
		if err != nil {
			return err
		}
		return h.Previews.Stream(s, c, h.activationVariants(console.UserOf(c), now, to, len(page.Choices) > 0)...)
	}
}

// deleteVariant returns the preview of deleting a team's allocation.
func (h *Pages) deleteVariant(user governance.User, team string) previews.Variant {
	return previews.Variant{Key: "delete", Title: "Effect on tasks and teams", Preview: func(ctx context.Context) (queries.Preview, error) {
		return h.Previews.Backend.Deletion(ctx, user, team)
	}}
}

// previewDelete answers the stream of the page that deletes an allocation.
func (h *Pages) previewDelete(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		now, err := h.deletable(c)
		if err != nil {
			return err
		}
		return h.Previews.Stream(s, c, h.deleteVariant(console.UserOf(c), now.Name))
	}
}
