package views

import "github.com/a-h/templ"

// TypedForm describes the values of a form for the script, which warns before
// unsaved values are discarded and keeps them in the history of the browser.
type TypedForm struct {
	Edited  bool // whether the form has unsaved values
	InPlace bool // whether the page is the response to a POST: its address has no values
	Lost    bool // whether the values in the address cannot be shown
}

// Attributes returns the attributes of the form element.
func (t TypedForm) Attributes() templ.Attributes {
	return templ.Attributes{"data-typed": "", "data-edited": t.Edited, "data-in-place": t.InPlace}
}
