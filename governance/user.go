package governance

// User is who asks for something.
type User struct {
	Name   string   // as Kubernetes knows them
	Groups []string // as Kubernetes knows them; without those that it adds by itself
	// Local marks the one identity of a console without sign-in: it acts with
	// the console's own rights, and exists on loopback only.
	Local bool
	From  string // address that the request came from, for the audit
}
