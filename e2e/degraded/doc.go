// Package degraded contains only tests. They run the console's services in a real
// cluster that lacks a part: parts of Kueue's configuration, permissions of the
// console, or Kueue's CRDs. Each package of tests has a cluster of its own; these
// tests have their own package because no other test could use that cluster.
package degraded
