// Package utilization reports how busy GPUs, Neuron devices and nodes are. It
// queries a Prometheus that scrapes dcgm-exporter, neuron-monitor and
// node-exporter. docs/hardware.md defines each figure. It also reports the progress of
// trainings, which docs/metrics.md describes.
//
// Pages never wait for Prometheus: Service polls in the background and keeps the
// last Reading. Histories are queried on demand, once per range, and cached.
//
//	Prometheus ◀──every 15 s── Service.Poll ──▶ Reading ──Sum(Inventory)──▶ Sums
//	           ◀──on demand─── Service.History (cache, singleflight) ─────▶ History
//
// It must not read Kubernetes: the caller passes an Inventory, which maps nodes to
// pools and pods to teams and tasks. It computes no quota.
package utilization
