package versions

import (
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"
)

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.PolicyVersions, h.Handler(h.policyVersions))
	s.Page(urls.PolicyVersions+"/:n", h.Handler(h.policyVersion))
	s.Page(urls.AllocationPrefix+":name/revisions", h.Handler(h.allocationVersions))
	s.Page(urls.AllocationPrefix+":name/revisions/:n", h.Handler(h.allocationVersion))
}
