package views

// ErrorPage is the page of an error.
type ErrorPage struct {
	Chrome
	Status  int    // HTTP status, shown small
	Message string // what is wrong and what to do
	Retry   string // address to try again; empty for none
	SignIn  string // address to sign in at; empty for none
}
