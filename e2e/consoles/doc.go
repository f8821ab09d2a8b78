// Package consoles is for tests: it starts replicas of the built console beside a
// cluster of clustertest, signs the admin in over HTTP, and checks what the replicas
// recorded in their history.
package consoles
