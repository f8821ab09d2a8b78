package views

import "strings"

// SignInAgain is the response to a form that was submitted after the session ended,
// or that another user opened.
type SignInAgain struct {
	Chrome
	OpenedBy, SignedInAs string // users of the form and of the session; empty if the session ended
	Login                string // address of sign-in; returns to the form
	Kept                 bool   // whether the form is filled in after sign-in
	Action               string // address of the form
	// Fields are the typed values if they do not fit into a cookie: this page submits
	// them again.
	Fields []HiddenField
}

// HiddenField is one value of a form.
type HiddenField struct{ Name, Value string }

// SignedOut is the page after signing out.
type SignedOut struct {
	Chrome
	SignIn   string // address of sign-in
	Provider string // address that signs out of the provider; empty for none
}

// NoAccess is the page of a signed-in user who is a member of no team.
type NoAccess struct {
	GroupsLeftOut bool // the provider left them out, because there are too many
	Chrome
	RetryURL string   // address to check again
	Groups   []string // the first groups of the user
	More     int      // number of further groups
	// Departments are those that the user is a member of. They have no team.
	Departments []NamedLink
}

// bindCommand returns the command that makes the user an admin.
func (p NoAccess) bindCommand() string {
	return "kubectl create clusterrolebinding kuota-admins --clusterrole kuota-admin --user '" + strings.ReplaceAll(p.User, "'", `'\''`) + "'"
}
