package governance

// User is who asks for something.
type User struct {
	Name   string
	Groups []string
	// Local marks the one identity of a console without sign-in: it acts with
	// the console's own rights, and exists on loopback only.
	Local bool
}
