package kueueconfig

import (
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Current is Kueue's configuration in the cluster.
type Current struct {
	Text  string   // controller_manager_config.yaml of the ConfigMap
	Args  []string // of the Deployment's manager container
	Image string   // of the same container; its tag shows the version

	// RestartCommand restarts Kueue. Empty means the command for the names of Kueue's
	// release manifests.
	RestartCommand string
}

// Desired is the configuration that a policy requires.
type Desired struct {
	Text string   // the current bytes unless ConfigChanged
	Args []string // the current ones unless ArgsChanged

	ConfigChanged, ArgsChanged bool

	// Changes are sentences about what changes.
	Changes []string
	// Unsupported are sentences about parts of the policy that Kuota cannot
	// configure. They do not depend on Changes.
	Unsupported []string
	// Patch lists the lines to change by hand; empty if nothing differs.
	Patch string
	// Version is the version of Kueue in the tag of its image, such as v0.19.2; empty
	// if the tag has none.
	Version string
}

// ForPolicy returns the configuration that a policy requires; the current one
// without a policy. The message of the error says why the configuration, or a
// value of the policy, is not supported.
func ForPolicy(seen Current, policy *v1alpha1.ClusterPolicySpec) (Desired, error) {
	v := versionOf(seen.Image)
	wanted := Desired{Text: seen.Text, Args: seen.Args, Version: v.text}
	if policy == nil {
		return wanted, nil
	}
	gang, err := gangOf(policy.GangScheduling)
	if err != nil {
		return wanted, err
	}
	usage, err := usageOf(policy.AdmissionFairSharing)
	if err != nil {
		return wanted, err
	}
	d, args, err := parse(seen)
	if err != nil {
		return wanted, err
	}
	d.setFairSharing(policy.IdleCompute.Strategy != v1alpha1.IdleFirstComeFirstServe)
	d.setAdmissionFairSharing(usage)
	d.setGangScheduling(gang)
	setWaitForPodsReadyGate(d, args, v, gang != nil)

	after, err := d.result()
	if err != nil {
		return wanted, err
	}
	wanted.Text, wanted.Args = after, args.list
	wanted.Changes, wanted.Unsupported = d.changes, d.unsupported
	wanted.ConfigChanged = after != seen.Text
	wanted.ArgsChanged = !slices.Equal(args.list, seen.Args)
	wanted.Patch = patch(seen, wanted)
	return wanted, nil
}

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
