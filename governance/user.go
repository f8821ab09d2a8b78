package governance

// User is the identity that a request acts as.
type User struct {
	Name   string   // in Kubernetes
	Groups []string // in Kubernetes, without those that the API server adds
	// Local marks the only identity of a console without sign-in. It acts with the
	// permissions of the console, which listens on loopback only.
	Local bool
	From  string // remote address, for the audit
	// ServiceAccount marks an account of Kubernetes that the API server confirmed by its
	// token. It may read what RBAC allows it, and nothing is done as it.
	ServiceAccount bool
}
