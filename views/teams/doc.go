// Package teams renders the list of teams, the page of a team, and the forms that submit a task.
package teams
