package views

import "github.com/a-h/templ"

// TypedForm says how the values of a form came into its page. The script goes by
// it: it asks before somebody leaves values that are not saved, and keeps them in
// the browser's history.
type TypedForm struct {
	Edited  bool // the page opens with values that are not saved
	InPlace bool // the page answers a POST: its address has no values
	Lost    bool // the address has values that cannot be shown
}

// attributes are those of the form element.
func (t TypedForm) attributes() templ.Attributes {
	return templ.Attributes{"data-typed": "", "data-edited": t.Edited, "data-in-place": t.InPlace}
}
