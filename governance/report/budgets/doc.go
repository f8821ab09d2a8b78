// Package budgets counts what teams used of their budgets, from history. What history does
// not know counts nothing, so that an outage triggers no action. The package writes nothing:
// the controller of budgets writes the status of allocations.
package budgets
