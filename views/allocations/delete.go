package allocations

import (
	"strconv"

	"kuota.dev/kuota/views"
)

// AllocationDelete is the page that confirms the deletion of an allocation and
// shows its effect.
type AllocationDelete struct {
	views.Chrome
	Team      string
	Action    string
	CancelURL string
	Preview   views.Preview

	Version, Generation string // preconditions of the deletion
	Failure             string
	Errors              []views.Message

	Running  int
	Tasks    []string // the first running tasks, with their kind
	More     int      // number of further running tasks
	Waiting  int
	Kept     string   // namespace that is kept
	Removed  []string // deleted objects, with their kind
	OnHold   bool     // whether the queue is on hold
	Deleting bool     // whether the deletion already waits for running tasks

	// Adopted is the ClusterQueue if it existed before the allocation; it can be
	// released instead of deleted.
	Adopted string

	InPlace bool              // whether the page is the response to a POST
	Reason  views.ReasonField // "reason"
	Confirm views.TextField   // the team's name, typed; "confirm"
}

func (p AllocationDelete) lead() string {
	switch {
	case p.Deleting && p.Running > 0:
		return "It is already being deleted. Deletion completes when the last of its tasks has ended."
	case p.Deleting:
		return "It is already being deleted."
	}
	return "Deletes the team's quota and queues. Nothing happens until you confirm below."
}

func (p AllocationDelete) runningWords() string {
	return views.Plural(p.Running, "task of the team is running", "tasks of the team are running")
}

func (p AllocationDelete) waitingWords() string {
	if p.Waiting == 1 {
		return "1 task waits in its queue. It is kept, and can start once the team has a queue again."
	}
	return strconv.Itoa(p.Waiting) + " tasks wait in its queue. They are kept, and can start once the team has a queue again."
}

// deletes returns the text of the button.
func (p AllocationDelete) deletes() string {
	if p.Running > 0 {
		return "Stop " + views.Plural(p.Running, "task", "tasks") + " and delete " + p.Team
	}
	return "Delete " + p.Team
}
