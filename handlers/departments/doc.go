// Package departments answers /departments: the page of a department, its deletion, and all
// departments as files. Package allocations has the form of a department, and package teams
// their tree.
package departments
