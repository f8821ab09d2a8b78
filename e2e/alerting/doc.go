// Package alerting causes the alerts about nodes, Kueue, loops, hardware and the console itself
// on a real API server, Kueue and Prometheus, beside a console that is killed in between.
package alerting
