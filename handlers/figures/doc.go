// Package figures has the query and the table of teams of the pages that show quota
// and usage: the dashboard and the list of teams.
package figures
