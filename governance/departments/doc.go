// Package departments serves the pages about departments: it reads the tree that a user may
// see, and reviews, creates, changes and deletes departments as the signed-in user.
//
// Package quota computes the sums of the tree, and package desired the objects of a
// department, which package reconcile writes. This package writes only departments.
package departments
