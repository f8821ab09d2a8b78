package handlers

import (
	"net/url"
	"slices"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/views"
)

// taskColumns are all columns of a list of tasks, in their order.
var taskColumns = []views.ColumnHead{
	{Label: "Name", ID: string(tasks.ByName)},
	{Label: "Status", ID: string(tasks.ByState)},
	{Label: "Team", ID: string(tasks.ByTeam)},
	{Label: "Priority class", ID: string(tasks.ByClass)},
	{Label: "Kind", ID: string(tasks.ByKind)},
	{Label: "Place", ID: string(tasks.ByPlace)},
	{Label: "Accelerators", ID: string(tasks.ByAccelerator), Number: true},
	{Label: "vCPU", ID: string(tasks.ByCPU), Number: true},
	{Label: "Memory", Unit: "GiB", ID: string(tasks.ByMemory), Number: true},
	{Label: "Pool", ID: string(tasks.ByPool)},
	{Label: "Submitted", ID: string(tasks.BySubmitted)},
	{Label: "Waited", ID: string(tasks.ByWaited), Number: true},
	{Label: "Ran", ID: string(tasks.ByRan), Number: true},
	{Label: "Preempted", Unit: "times", ID: string(tasks.ByPreemptions), Number: true},
}

// alwaysShown are the columns without which a row says nothing.
var alwaysShown = map[string]bool{string(tasks.ByName): true, string(tasks.ByState): true}

// hide takes the choice of columns from an address. Links name those that are
// hidden, so that the usual list has a short address; the form names those that
// are shown, behind an empty one that says that there was a choice.
func (q *taskQuery) hide(values url.Values) {
	q.hidden = map[string]bool{}
	var names []string
	for _, column := range taskColumns {
		hidden := slices.Contains(values["hide"], column.ID)
		if values.Has("cols") {
			hidden = !slices.Contains(values["cols"], column.ID)
		}
		if hidden && !alwaysShown[column.ID] {
			q.hidden[column.ID] = true
			names = append(names, column.ID)
		}
	}
	if len(names) > 0 {
		q.values["hide"] = names
	}
}

// columns are the choices of columns.
func (q taskQuery) columns() (choices []views.ColumnChoice) {
	for _, column := range taskColumns {
		if !alwaysShown[column.ID] {
			choices = append(choices, views.ColumnChoice{ID: column.ID, Label: column.Label, Shown: !q.hidden[column.ID]})
		}
	}
	return choices
}
