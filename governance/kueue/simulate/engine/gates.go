package engine

import (
	"maps"
	"slices"
	"sync"

	"kuota.dev/kuota/governance/kueue/simulate"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/kueue/pkg/features"
)

// gates guards the feature gates of this process: runs read them.
var gates struct {
	sync.RWMutex
	current map[string]bool // nil until first set
}

// observed are gates that do not change what the scheduler decides: they make it
// write why.
var observed = []featuregate.Feature{features.UnadmittedWorkloadsObservability, features.UnadmittedWorkloadsExplicitStatus}

// unobserved are gates of metrics, which no process scrapes from a simulation. Their
// counts of pending Workloads took a fifth of its time.
var unobserved = []featuregate.Feature{features.LocalQueueMetrics, features.MetricsForCohorts, features.MetricForWorkloadCreationLatency, features.CustomMetricLabels}

// quick answers from one map. The gates of Kubernetes count who asks, which took a
// tenth of the time of a simulation.
type quick struct {
	featuregate.FeatureGate
	enabled map[featuregate.Feature]bool
}

func (q quick) Enabled(f featuregate.Feature) bool {
	if on, known := q.enabled[f]; known {
		return on
	}
	return q.FeatureGate.Enabled(f)
}

// maxTriedEach is up to how many Workloads each is tried, if the cluster's Kueue does so.
const maxTriedEach = 1000

// gatesOf returns the feature gates with which a snapshot is simulated. In a large one,
// equal Workloads of a queue are tried once, as Kueue does by default: trying each takes
// ten times as long. It decides otherwise only if Workloads of other queues that compete
// with what is behind these are tried meanwhile.
func gatesOf(s *simulate.Snapshot) map[string]bool {
	of := s.Configuration.FeatureGates
	if len(s.Workloads) <= maxTriedEach {
		return of
	}
	of = maps.Clone(of)
	delete(of, string(features.SchedulingEquivalenceHashing)) // on by default
	return of
}

// withGates calls run while the feature gates of this process are those of a
// cluster's Kueue.
func withGates(of map[string]bool, run func() error) error {
	gates.RLock()
	if gates.current == nil || !maps.Equal(gates.current, of) {
		gates.RUnlock()
		if err := setGates(of); err != nil {
			return err
		}
		gates.RLock()
	}
	defer gates.RUnlock()
	return run()
}

func setGates(of map[string]bool) error {
	gates.Lock()
	defer gates.Unlock()
	all := map[string]bool{} // those to change
	for feature, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		on, set := of[string(feature)]
		switch {
		case slices.Contains(observed, feature):
			on = true
		case slices.Contains(unobserved, feature):
			on = false
		case !set:
			on = spec.Default
		}
		if on != utilfeature.DefaultMutableFeatureGate.Enabled(feature) && !spec.LockToDefault {
			all[string(feature)] = on
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(all); err != nil {
		return err
	}
	to := quick{FeatureGate: utilfeature.DefaultMutableFeatureGate, enabled: map[featuregate.Feature]bool{}}
	for feature := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		to.enabled[feature] = utilfeature.DefaultMutableFeatureGate.Enabled(feature)
	}
	utilfeature.DefaultFeatureGate = to
	if gates.current = maps.Clone(of); gates.current == nil {
		gates.current = map[string]bool{}
	}
	return nil
}

// UnknownGates returns the gates that this version of Kueue does not have: the
// cluster runs another one.
func UnknownGates(of map[string]bool) (unknown []string) {
	all := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name := range of {
		if _, known := all[featuregate.Feature(name)]; !known {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
