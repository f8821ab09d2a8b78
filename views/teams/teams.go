package teams

import "kuota.dev/kuota/views"

// TeamsPage is the list of teams. The table is the fragment with the id teams.
type TeamsPage struct {
	views.Chrome
	Notice      string // what was just done; empty for nothing
	Departments views.DepartmentTable
	Controls    views.Controls
	Teams       views.TeamTable
	Shares      *Shares // nil for none
}
