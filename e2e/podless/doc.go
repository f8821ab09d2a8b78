// Package podless is for tests: it does the work of the Job controller and the kubelet
// where Jobs have no pods, so that a cluster runs hundreds of Jobs at once. Kueue sees
// no difference: it suspends and resumes these Jobs, and reads their status.
package podless
