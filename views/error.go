package views

// ErrorPage says that something went wrong, in words that help.
type ErrorPage struct {
	Chrome
	Status  int    // HTTP status, shown small
	Message string // what happened and what to do
	Retry   string // address to try again; empty when that makes no sense
	SignIn  string // address to sign in at; empty when that does not help
}
