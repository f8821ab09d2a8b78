package tasks

import (
	"net/url"
	"slices"

	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// taskColumns are all columns of a list of tasks, in their order.
var taskColumns = []ui.Head{
	{Label: "Name", ID: string(index.ByName)},
	{Label: "Status", ID: string(index.ByState)},
	{Label: "Team", ID: string(index.ByTeam)},
	{Label: "Priority class", ID: string(index.ByPriorityClass)},
	{Label: "Kind", ID: string(index.ByKind)},
	{Label: "Position", ID: string(index.ByPosition)},
	{Label: "Accelerators", ID: string(index.ByAccelerator), Number: true},
	{Label: "vCPU", ID: string(index.ByCPU), Number: true},
	{Label: "Memory", Unit: "GiB", ID: string(index.ByMemory), Number: true},
	{Label: "Pool", ID: string(index.ByPool)},
	{Label: "Submitted", ID: string(index.BySubmitted)},
	{Label: "Waited", ID: string(index.ByWaited), Number: true},
	{Label: "Ran", ID: string(index.ByRan), Number: true},
	{Label: "Preempted", ID: string(index.ByPreemptions), Number: true},
}

// alwaysShown are the columns that cannot be hidden.
var alwaysShown = map[string]bool{string(index.ByName): true, string(index.ByState): true}

// usuallyHidden are the columns that are hidden by default. The others fit on a
// screen of 1280 px.
var usuallyHidden = map[string]bool{string(index.ByKind): true, string(index.ByCPU): true, string(index.ByMemory): true}

// hide reads the choice of columns from an address. Links contain only differences
// from the default, as hide= and show=, so that the default list has a short
// address. The form sends all shown columns, after an empty value that marks that a
// choice was made.
func (q *taskQuery) hide(values url.Values) {
	q.hidden = map[string]bool{}
	for _, column := range taskColumns {
		hidden := slices.Contains(values["hide"], column.ID) || usuallyHidden[column.ID] && !slices.Contains(values["show"], column.ID)
		if values.Has("cols") {
			hidden = !slices.Contains(values["cols"], column.ID)
		}
		if alwaysShown[column.ID] {
			continue
		}
		q.hidden[column.ID] = hidden
		switch {
		case hidden && !usuallyHidden[column.ID]:
			q.Values.Add("hide", column.ID)
		case !hidden && usuallyHidden[column.ID]:
			q.Values.Add("show", column.ID)
		}
	}
}

// columns returns the choices of columns.
func (q taskQuery) columns() (choices []views.ColumnChoice) {
	for _, column := range taskColumns {
		if !alwaysShown[column.ID] {
			choices = append(choices, views.ColumnChoice{ID: column.ID, Label: column.Label, Shown: !q.hidden[column.ID]})
		}
	}
	return choices
}
