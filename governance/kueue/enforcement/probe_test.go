package enforcement_test

import (
	"errors"
	"testing"

	"kuota.dev/kuota/governance/kueue/enforcement"
)

func TestProbeResult(t *testing.T) {
	const denied = `configmaps "kuota-enforcement" is invalid: : ValidatingAdmissionPolicy 'kuota-enforcement-probe' with binding 'kuota-enforcement-probe' denied request: `
	for name, tc := range map[string]struct {
		err  error
		want enforcement.ProbeResult
	}{
		"admitted":           {nil, enforcement.ProbeAdmitted},
		"rejected":           {errors.New(denied + "the API server has the current parameters"), enforcement.ProbeRejected},
		"outdated":           {errors.New(denied + "the API server has outdated parameters"), enforcement.ProbeOutdated},
		"another policy":     {errors.New("ValidatingAdmissionPolicy 'company' denied request: the API server has the current parameters"), enforcement.ProbeUnknown},
		"an error of ours":   {errors.New("ValidatingAdmissionPolicy 'kuota-enforcement-probe' failed: no such key"), enforcement.ProbeUnknown},
		"no permission":      {errors.New(`configmaps "kuota-enforcement" is forbidden`), enforcement.ProbeUnknown},
		"no response at all": {errors.New("connection refused"), enforcement.ProbeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := enforcement.ProbeResultOf(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
