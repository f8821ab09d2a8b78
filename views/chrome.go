package views

// Chrome is the frame that every page stands in.
type Chrome struct {
	Title       string        // the page's h1, and the start of the browser tab's title
	Active      string        // the navigation entry that is current: "dashboard", "tasks", "teams", "policies", "instances" or "settings"
	User        string        // who is signed in, as shown; empty for nobody, who is shown no more than the page itself
	SignOut     bool          // whether the person can sign out, which the local identity cannot
	RedirectURL string        // address that the browser goes on to by itself, at once; empty for none
	Cluster     ClusterStatus // how fresh the page's data is
	Settings    string        // address of the settings; empty for who is not shown them
	Trouble     string        // a sentence about what keeps the whole console from working; empty for nothing
	Charts      bool          // whether the page may have charts
	Stream      string        // address of the page's event stream; empty for a page that does not change by itself
}

// ClusterStatus tells how old the data on a page is. It is the fragment with
// the id cluster-status and is sent again over every event stream.
type ClusterStatus struct {
	Name      string // the cluster's name as configured
	Reachable bool   // false once the API server has not answered for some seconds
	Age       string // time since the API server last answered, such as "0.3 s"
}

// Message is one sentence for the person, optionally tied to a form field.
type Message struct {
	Field string // id of the input it belongs to; empty when it belongs to none
	Label string // how the summary names that input, such as "Row 2, vCPU"
	Text  string
}
