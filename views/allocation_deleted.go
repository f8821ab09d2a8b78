package views

// AllocationDeleted is the page of somebody who changes a team that was deleted
// meanwhile. It keeps the whole form in hidden inputs.
type AllocationDeleted struct {
	Chrome
	Team    string
	UpURL   string
	Action  string        // where the form of a new allocation is posted
	Create  bool          // whether the reader may create it again
	InPlace bool          // whether the page answers a POST
	Fields  []HiddenField // the typed values
	By      string        // who deleted it; empty where that is not known
	When    string        // RFC 3339; empty where that is not known
	Reason  string        // why; empty where nobody said so
	Typed   []ValueLine   // what was typed

	VersionsURL string // its versions; empty where none are kept
}
