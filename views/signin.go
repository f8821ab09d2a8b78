package views

// SignInAgain is the answer to a form whose sender's session had ended, or who
// is somebody else by now.
type SignInAgain struct {
	Chrome
	OpenedBy, SignedInAs string // who opened the form and who is signed in now; empty where that is not the trouble
	Login                string // where to sign in; leads back to the form
	Kept                 bool   // whether the form is filled in by itself afterwards
	Action               string // where the form was sent
	// Fields are what was typed, where it is too long to be kept otherwise: then
	// this page holds it, and sends it once more.
	Fields []HiddenField
}

// HiddenField is one value of a form.
type HiddenField struct{ Name, Value string }

// SignedOut is the page after signing out.
type SignedOut struct {
	Chrome
	SignIn   string // where to sign in again
	Provider string // where to be signed out of the provider too; empty for nowhere
}

// NoAccess is the page of somebody who is signed in and may see no team.
type NoAccess struct {
	Chrome
	RetryURL string   // address to look again
	Groups   []string // the first of the groups the person is in
	More     int      // how many groups more
}
