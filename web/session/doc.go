// Package session keeps people signed in: a random id in the browser, and who
// it stands for sealed in a store that every replica reads. It decides when a
// session ends, and has the provider confirm it every few minutes. It knows no
// cookie, no page and no Kubernetes.
package session
