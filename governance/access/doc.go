// Package access says what a person may see and do. Kubernetes decides, by
// SubjectAccessReview; this package asks, and remembers the answers for some
// seconds, each for one person only. There is no second permission system.
package access
