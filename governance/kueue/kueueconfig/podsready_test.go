package kueueconfig

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWaitForPodsReady(t *testing.T) {
	const v1, v2 = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n", "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
	waits := func(timeout time.Duration, blocks bool) *v1alpha1.WaitForPodsReady {
		return &v1alpha1.WaitForPodsReady{Timeout: metav1.Duration{Duration: timeout}, BlockAdmission: blocks}
	}
	for name, c := range map[string]struct {
		text, image string
		args        []string
		want        *v1alpha1.WaitForPodsReady
	}{
		"v1beta1 without the section":       {v1, "x:v0.19.2", nil, nil},
		"v1beta1, disabled":                 {v1 + "waitForPodsReady: {enable: false}\n", "x:v0.19.2", nil, nil},
		"v1beta1 blocks by default":         {v1 + "waitForPodsReady: {enable: true}\n", "x:v0.19.2", nil, waits(5*time.Minute, true)},
		"v1beta1 that does not block":       {v1 + "waitForPodsReady: {enable: true, timeout: 90s, blockAdmission: false}\n", "x:v0.19.2", nil, waits(90*time.Second, false)},
		"v1beta2 without the section":       {v2, "x:v0.19.2", nil, waits(30*time.Minute, false)},
		"older v1beta2 without the section": {v2, "x:v0.18.0", nil, nil},
		"v1beta2 that blocks":               {v2 + "waitForPodsReady: {timeout: 2m, blockAdmission: true}\n", "x:v0.19.2", nil, waits(2*time.Minute, true)},
		"the gate in the configuration":     {v2 + "featureGates: {DisableWaitForPodsReady: true}\n", "x:v0.19.2", nil, nil},
		"the gate as an argument":           {v2, "x:v0.19.2", []string{"--feature-gates=DisableWaitForPodsReady=true"}, nil},
		"no configuration":                  {"", "x:v0.19.2", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, WaitForPodsReady(Current{Text: c.text, Image: c.image, Args: c.args})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
