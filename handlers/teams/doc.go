// Package teams answers /teams: the list of teams and the page of one team, its usage now and
// in the past, and the form that submits a task.
package teams
