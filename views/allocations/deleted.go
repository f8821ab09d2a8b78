package allocations

import "kuota.dev/kuota/views"

// AllocationDeleted is the response to a change of a team that was deleted
// meanwhile. It keeps the form in hidden inputs.
type AllocationDeleted struct {
	views.Chrome
	Team    string
	UpURL   string
	Action  string              // where the form of a new allocation is posted
	Create  bool                // whether the user may create it again
	InPlace bool                // whether the page is the response to a POST
	Fields  []views.HiddenField // the typed values
	By      string              // who deleted it; empty if unknown
	When    string              // RFC 3339; empty if unknown
	Reason  string              // empty for none
	Typed   []views.ValueLine   // the typed values, for reading

	VersionsURL string // page of its versions; empty without history
}
