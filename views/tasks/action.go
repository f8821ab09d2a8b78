package tasks

import "kuota.dev/kuota/views"

// TaskActions are the actions that the user may take on a task.
type TaskActions struct {
	Buttons []views.ActionButton
	Missing string // missing permissions; empty for none
}
