package views

import "strconv"

// AllocationDelete is the page that asks whether to delete an allocation, and
// says with numbers what that does.
type AllocationDelete struct {
	Chrome
	Team      string
	Action    string
	CancelURL string

	Version, Generation string // what is deleted is what was read
	Failure             string
	Errors              []Message

	Running  int
	Tasks    []string // the first of those that run, with their kind
	More     int      // how many more run
	Waiting  int
	Kept     string   // the namespace, which stays
	Removed  []string // objects that go, with their kind
	OnHold   bool     // whether its queue starts no task already
	Deleting bool     // whether it is being deleted already, and waits for its tasks

	InPlace bool        // whether the page answers a POST
	Reason  ReasonField // "reason"
	Confirm TextField   // the team's name, typed; "confirm"
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
	return count(p.Running, "task of the team is running", "tasks of the team are running")
}

func (p AllocationDelete) waitingWords() string {
	if p.Waiting == 1 {
		return "1 task waits in its queue. It is kept, and can start once the team has a queue again."
	}
	return strconv.Itoa(p.Waiting) + " tasks wait in its queue. They are kept, and can start once the team has a queue again."
}

// deletes is what the button does, in words.
func (p AllocationDelete) deletes() string {
	if p.Running > 0 {
		return "Stop " + count(p.Running, "task", "tasks") + " and delete " + p.Team
	}
	return "Delete " + p.Team
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func differences(n int) string { return count(n, "value differs", "values differ") }
