package preemptionloops_test

import (
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"sigs.k8s.io/yaml"
)

// The preemption strategies of fair sharing.
const (
	finalShare   = "LessThanOrEqualToFinalShare"
	initialShare = "LessThanInitialShare"
)

// configuration is the part of Kueue's configuration that decides whether it
// loops.
type configuration struct {
	strategies []string // of fair sharing; without any, fair sharing is off
	prioritize bool     // feature gate PrioritizePreemptorWorkloads
}

var (
	fairShare = configuration{strategies: []string{finalShare, initialShare}} // what Kuota writes
	firstCome = configuration{}
)

// apply restarts Kueue with the configuration.
func (want configuration) apply(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	c.Configure(t, func(text string) string {
		var config map[string]any
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		delete(config, "fairSharing")
		if len(want.strategies) > 0 {
			config["fairSharing"] = map[string]any{"preemptionStrategies": want.strategies}
		}
		gates, _ := config["featureGates"].(map[string]any)
		if gates == nil {
			gates = map[string]any{}
			config["featureGates"] = gates
		}
		delete(gates, "PrioritizePreemptorWorkloads")
		if want.prioritize {
			gates["PrioritizePreemptorWorkloads"] = true
		}
		edited, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return string(edited)
	})
}
