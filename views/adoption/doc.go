// Package adoption renders the page that adopts existing ClusterQueues.
package adoption
