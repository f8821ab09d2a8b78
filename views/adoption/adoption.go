package adoption

import "kuota.dev/kuota/views"

// AdoptionPage is the page that adopts existing ClusterQueues. It has two steps: the
// selection, and the review of what is created.
type AdoptionPage struct {
	views.Chrome
	Action, CancelURL string
	InPlace           bool     // whether the page is the response to a POST
	Failure           string   // why nothing was adopted; empty for none
	Failures          []string // one for each ClusterQueue
	Adopted           string   // sentence about the ClusterQueues that were adopted; empty for none
	Queues            []AdoptionQueue
	Review            *AdoptionReview // nil in the first step
}

// AdoptionQueue is one ClusterQueue that Kuota does not manage.
type AdoptionQueue struct {
	Name     string
	Team     string       // name of its allocation, if it is another
	Verdict  views.Status // Manage, Observe or Refuse
	Reasons  []string
	Selected bool
	Locked   string // why it cannot be selected; empty if it can
}

// AdoptionReview is what adopting the selected ClusterQueues creates.
type AdoptionReview struct {
	Managed       []string // ClusterQueues
	Observed      []string // ClusterQueues that Kuota only shows
	Policy        bool     // whether the cluster policy is created
	Classes       []string // priority classes that stay outside the policy, with the reasons
	KueueChanges  string   // lines of Kueue's configuration that the policy changes
	PolicyProblem string   // why these are unknown
	YAML          string   // all objects
	Reason        views.ReasonField
}

func (r AdoptionReview) verb() string {
	switch {
	case len(r.Observed) == 0:
		return "Adopt"
	case len(r.Managed) == 0:
		return "Observe"
	}
	return "Adopt and observe"
}
