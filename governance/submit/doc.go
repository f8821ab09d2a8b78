// Package submit helps people to submit tasks: it fills in what a request
// leaves out, writes it as manifests of the kinds that Kueue manages, says
// beforehand how it would fare, and makes the job as the person.
//
// It never decides on admission, which is Kueue's, and makes no job but of
// batch/v1.
package submit
