package imports

import (
	allocationpages "kuota.dev/kuota/handlers/allocations"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/forms"
	policypages "kuota.dev/kuota/handlers/policy"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Pages answers the routes of the import, which opens the form of what it reads.
type Pages struct {
	*console.Console
	forms.Addresses
	Policy          console.Policy
	AllocationPages *allocationpages.Pages
	PolicyPages     *policypages.Pages
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Form(urls.Import, h.Handler(h.Writing(h.importForm(s))), h.Handler(h.Writing(h.importObjects)))
}
