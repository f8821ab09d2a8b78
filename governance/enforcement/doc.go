// Package enforcement builds the admission policies that keep jobs and pods in
// governed namespaces under Kueue: those of deploy/rbac/enforcement.yaml.
//
// They are installed with the console's other RBAC and not by the console, so
// that whoever takes over the console cannot take them away. What they need to
// know of the cluster they read from the ClusterPolicy: the spec says whether
// they act, and its status which of Kueue's integrations are on, who Kueue is,
// and which controllers make the pods of admitted jobs.
package enforcement
