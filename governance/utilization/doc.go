// Package utilization knows how busy GPUs, Neuron devices and nodes are, as a
// Prometheus says that scrapes dcgm-exporter, neuron-monitor and node-exporter.
// docs/hardware.md defines each figure.
//
// It asks in the background and keeps what it was told last, so that nobody who
// looks waits for Prometheus. What a team was given and holds is not its business:
// nodes and pods are placed by maps that are handed to it.
package utilization
