// Package enforcement builds the admission policies of
// deploy/rbac/enforcement.yaml, which reject jobs and pods without a queue in team
// namespaces.
//
// The policies are installed with the console's RBAC and not by the console, so
// that an attacker of the console cannot remove them. Their parameters, such as
// Kueue's enabled integrations, are in a ConfigMap that the console writes.
package enforcement
