package views

import (
	"net/url"

	"kuota.dev/kuota/views/ui"
)

// Chrome is the frame of every page: header, navigation and status.
type Chrome struct {
	Title       string        // the page's h1, and the start of the browser tab's title
	Active      string        // the page: "dashboard", "tasks", "queue", "teams", "policies", "instances", "usage", "activity", "alerts", "notices" or "settings"
	User        string        // signed-in user; empty: the page has no navigation and no cluster status
	SignOut     bool          // whether the user can sign out, which the local user cannot
	RedirectURL string        // address that the browser opens at once; empty for none
	Cluster     ClusterStatus // age of the data
	Settings    string        // address of the settings; empty without permission
	Trouble     string        // a problem of the whole console, as a sentence; empty for none
	Done        string        // what was just saved, as a sentence; empty for nothing
	Notices     string        // address of the notices of the user; empty for a console without
	Alerts      int           // alerts that fire and are not silenced, as the user sees them
	Charts      bool          // whether the page loads the chart scripts
	Stream      string        // address of the page's event stream; empty for a static page
}

// ClusterStatus is the age of the data of a page: the fragment with the id
// cluster-status, which every event stream sends.
type ClusterStatus struct {
	Name      string // configured name of the cluster
	Reachable bool   // false if the API server has not answered for some seconds
	Age       string // time since the API server last answered, such as "0.3 s"
}

// ExternalLink is a link to an external system; without a URL, there is none.
type ExternalLink struct{ Host, URL string }

// Message is one sentence for the user, optionally about a form field.
type Message = ui.SummaryLine

func teamTabs(team, active string) []Tab {
	page, of := "/teams/"+team, "?"+url.Values{"team": {team}}.Encode()
	tabs := []Tab{
		{Label: "Overview", URL: page}, {Label: "Tasks", URL: "/tasks" + of}, {Label: "Usage", URL: "/usage" + of}, {Label: "Activity", URL: "/activity" + of},
		{Label: "Submit", URL: page + "/submit"}, {Label: "Allocation", URL: "/policies/allocations/" + team},
	}
	for i := range tabs {
		tabs[i].Current = tabs[i].Label == active
	}
	return tabs
}
