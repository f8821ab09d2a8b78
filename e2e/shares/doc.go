// Package shares has only tests: they measure on the real Kueue how the GPU time of a
// team divides between its shares, and how long a share that was idle takes to catch up.
//
//	allocation, policy ──controllers──▶ LocalQueue of each share, Kueue's configuration
//	backlog of equal Jobs in each share ──Kueue──▶ admitted Workloads ──watch──▶ GPU time by share
package shares
