package kueueconfig

import (
	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Describe returns the parts of a policy that describe Kueue's configuration: how
// idle compute is shared, and gang scheduling. ForPolicy shows what the policy would
// still change, such as defaults of Kueue that differ from those of a policy.
func Describe(text string) (v1alpha1.IdleComputeStrategy, v1alpha1.GangScheduling, error) {
	d, err := read(text)
	if err != nil {
		return "", v1alpha1.GangScheduling{}, err
	}
	strategy := v1alpha1.IdleFirstComeFirstServe
	if section := d.section(fairSharing); section != nil && (!d.hasEnable || isTrue(child(section, "enable"))) {
		strategy = v1alpha1.IdleFairShare
	}
	section := d.section(waitForPodsReady)
	if section == nil || d.hasEnable && !isTrue(child(section, "enable")) {
		return strategy, v1alpha1.GangScheduling{}, nil
	}
	var file struct {
		Wait struct {
			Timeout         *metav1.Duration `json:"timeout"`
			RecoveryTimeout *metav1.Duration `json:"recoveryTimeout"`
			BlockAdmission  bool             `json:"blockAdmission"`
			Requeuing       struct {
				Timestamp          string `json:"timestamp"`
				BackoffLimitCount  *int32 `json:"backoffLimitCount"`
				BackoffBaseSeconds *int32 `json:"backoffBaseSeconds"`
				BackoffMaxSeconds  *int32 `json:"backoffMaxSeconds"`
			} `json:"requeuingStrategy"`
		} `json:"waitForPodsReady"`
	}
	if err := yaml.Unmarshal([]byte(d.text), &file); err != nil {
		return strategy, v1alpha1.GangScheduling{}, invalid(err, "The section waitForPodsReady of Kueue's configuration cannot be read.")
	}
	wait := file.Wait
	return strategy, v1alpha1.GangScheduling{
		Enabled: true, Timeout: wait.Timeout, RecoveryTimeout: wait.RecoveryTimeout, BlockAdmission: wait.BlockAdmission,
		Requeuing: v1alpha1.Requeuing{Timestamp: wait.Requeuing.Timestamp, BackoffLimitCount: wait.Requeuing.BackoffLimitCount, BackoffBaseSeconds: wait.Requeuing.BackoffBaseSeconds, BackoffMaxSeconds: wait.Requeuing.BackoffMaxSeconds},
	}, nil
}
