package policy

import (
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Pages answers the routes of the cluster policy.
type Pages struct {
	*console.Console
	forms.Addresses
	Policy   console.Policy
	Previews *previews.Previews
	Versions *versions.Pages
}

func toPolicies(c echo.Context) error { return c.Redirect(http.StatusSeeOther, urls.Policies) }

// tryAgain answers POST /policies/cluster/try-again.
func (h *Pages) tryAgain(c echo.Context) error {
	if err := h.Policy.TryAgain(c.Request().Context(), console.UserOf(c)); err != nil {
		return err
	}
	return toPolicies(c)
}

// apiTryAgain answers POST /policy/try-again of the API.
func (h *Pages) apiTryAgain(c echo.Context) error {
	return console.Done(c, h.Policy.TryAgain(c.Request().Context(), console.UserOf(c)))
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.PolicyYAML, h.Handler(h.policyYAML))
	for _, part := range parts {
		(&form{h, part}).register(s)
	}
	h.registerAPI(s)
	s.Form(urls.TryPolicyAgain, h.Handler(toPolicies), h.Handler(h.Writing(h.tryAgain)))
}

// policyYAML answers GET /policies/cluster/yaml: the policy as a file, for who
// sees it.
func (h *Pages) policyYAML(c echo.Context) error {
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	if err == nil && state.Policy == nil {
		err = &governance.Error{Kind: governance.NotFound, Op: "read policy", Message: "There is no cluster policy. Create one on the policies page."}
	}
	if err != nil {
		return err
	}
	return console.YAMLFile(c, "cluster-policy", manifest.PolicyYAML(state.Policy))
}
