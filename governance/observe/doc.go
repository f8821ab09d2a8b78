// Package observe reads how the cluster is now: its capacity, the logs of containers, and how busy
// devices are.
package observe
