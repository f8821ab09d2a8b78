// Package departments has the page of a department.
package departments
