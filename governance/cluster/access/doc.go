// Package access reports what a user can see and do. Kubernetes decides, by
// SubjectAccessReview. The package sends the reviews and caches each decision for
// some seconds, for one user only. It has no permissions of its own.
package access
