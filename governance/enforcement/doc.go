// Package enforcement builds the admission policies that keep jobs and pods in
// governed namespaces under Kueue: those of deploy/rbac/enforcement.yaml.
//
// They are installed with the console's other RBAC and not by the console, so
// that whoever takes over the console cannot take them away. What they need to
// know, such as which of Kueue's integrations are on, the console writes into a
// ConfigMap.
package enforcement
