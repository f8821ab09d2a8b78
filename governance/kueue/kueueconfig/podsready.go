package kueueconfig

import (
	"cmp"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// Kueue's timeouts of waitForPodsReady where its configuration has none.
const (
	defaultPodsReadyTimeout       = "5m"  // v1beta1
	defaultPodsReadyTimeoutWithV2 = "30m" // v1beta2, from Kueue 0.19 also without the section
)

// WaitForPodsReady returns how Kueue waits for pods, with Kueue's defaults; nil if it does
// not wait, or if its configuration cannot be read.
func WaitForPodsReady(seen Current) *v1alpha1.WaitForPodsReady {
	d, args, err := parse(seen)
	if err != nil {
		return nil
	}
	section, v := d.section(waitForPodsReady), versionOf(seen.Image)
	gate, _ := d.gate(args, gateName)
	switch {
	case gate == "true", d.hasEnable && !isTrue(child(section, "enable")):
		return nil
	case section == nil && v.known() && v.minor < 19:
		return nil
	}
	wait := &v1alpha1.WaitForPodsReady{BlockAdmission: isTrue(child(section, "blockAdmission"))}
	if d.hasEnable {
		wait.BlockAdmission = wait.BlockAdmission || child(section, "blockAdmission") == nil
	}
	initial := defaultPodsReadyTimeoutWithV2
	if d.hasEnable {
		initial = defaultPodsReadyTimeout
	}
	timeout, _ := duration(scalar(child(section, "timeout"))) // zero is the default to Kueue
	byDefault, _ := duration(initial)
	wait.Timeout = cmp.Or(timeout, byDefault)
	return wait
}
