package allocations

import (
	"net/http"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/bulk"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	policypages "kuota.dev/kuota/handlers/policy"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Pages answers the routes of compute allocations, and /policies, which lists them.
type Pages struct {
	*console.Console
	forms.Addresses
	Bulk        *bulk.Pages
	Previews    *previews.Previews
	PolicyPages *policypages.Pages // for the card of the cluster policy
	Versions    *versions.Pages
	Revisions   versions.Revisions
	Changes     console.Listener // of allocations and of the cluster policy
	// RecordsUsers reports whether the API server records who changes a spec; nil
	// means that it does.
	RecordsUsers func() bool
	Naming       desired.Naming
	Adoption     console.Adoption // nil if ClusterQueues cannot be adopted
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Policies, h.Handler(h.policies))
	s.Events(urls.Policies+"/events", h.policiesEvents(s))
	toList := func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, urls.Policies) }
	s.Form(urls.PoliciesMany, h.Handler(toList), h.Handler(h.Writing(h.selected)))
	s.Page(urls.PoliciesCSV, h.Handler(h.policiesCSV))
	s.Page(urls.PoliciesJSON, h.Handler(h.policiesJSON))
	s.Form(urls.NewAllocation, h.Handler(h.Writing(h.newAllocation(s))), h.Handler(h.Writing(forms.Post(h.takeNew))))
	s.Page(forms.ReviewURL(urls.NewAllocation), h.Handler(h.Writing(h.Review(func(echo.Context) string { return urls.NewAllocation }, h.takeNew))))
	s.Events(forms.ReviewURL(urls.NewAllocation)+"/events", h.Handler(h.previewReview(s)))
	s.Events(forms.ReviewURL(urls.AllocationPrefix+":name/edit")+"/events", h.Handler(h.previewReview(s)))
	s.Events(urls.AllocationPrefix+":name/delete/events", h.Handler(h.previewDelete(s)))
	s.Page(urls.AllocationPrefix+":name", h.Handler(h.allocation))
	s.Page(urls.AllocationPrefix+":name/yaml", h.Handler(h.allocationYAML))
	s.Events(urls.AllocationPrefix+":name/events", h.Handler(h.allocationEvents(s)))
	s.Form(urls.AllocationPrefix+":name/edit", h.Handler(h.Writing(h.editAllocation(s))), h.Handler(h.Writing(forms.Post(h.takeEdit))))
	s.Page(forms.ReviewURL(urls.AllocationPrefix+":name/edit"), h.Handler(h.Writing(h.Review(func(c echo.Context) string { return editURL(c.Param("name")) }, h.takeEdit))))
	for path, to := range map[string]v1alpha1.Activation{"hold": v1alpha1.Hold, "resume": v1alpha1.Active} {
		confirm, do := h.activation(to)
		s.Form(urls.AllocationPrefix+":name/"+path, h.Handler(h.Writing(confirm)), h.Handler(h.Writing(do)))
		s.Events(urls.AllocationPrefix+":name/"+path+"/events", h.Handler(h.previewActivation(s, to)))
	}
	s.Form(urls.NewDepartment, h.Handler(h.Writing(h.newDepartment(s))), h.Handler(h.Writing(forms.Post(h.takeDepartment))))
	s.Page(forms.ReviewURL(urls.NewDepartment), h.Handler(h.Writing(h.Review(func(echo.Context) string { return urls.NewDepartment }, h.takeDepartment))))
	s.Form(urls.DepartmentPrefix+":name/edit", h.Handler(h.Writing(h.editDepartment(s))), h.Handler(h.Writing(forms.Post(h.takeDepartment))))
	s.Page(forms.ReviewURL(urls.DepartmentPrefix+":name/edit"), h.Handler(h.Writing(h.Review(func(c echo.Context) string { return urls.EditDepartment(c.Param("name")) }, h.takeDepartment))))
	for _, path := range []string{urls.NewDepartment, urls.DepartmentPrefix + ":name/edit"} {
		s.Events(forms.ReviewURL(path)+"/events", h.Handler(h.previewDepartment(s)))
	}
	h.registerAPI(s)
	s.Form(urls.AllocationPrefix+":name/delete", h.Handler(h.Writing(h.confirmDelete)), h.Handler(h.Writing(h.deleteAllocation)))
}

// allocationYAML answers GET /policies/allocations/{name}/yaml: an allocation
// as a file.
func (h *Pages) allocationYAML(c echo.Context) error {
	a, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), c.Param("name"))
	if err != nil {
		return err
	}
	return console.YAMLFile(c, a.Name, manifest.AllocationYAML(&a))
}
