package simulate

import (
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Change turns one snapshot into another: objects that it has replace those of the
// same name or are added, and those that it names are removed.
type Change struct {
	Configuration   *Configuration          `json:"configuration,omitempty"`
	Namespaces      []*corev1.Namespace     `json:"namespaces,omitempty"`
	Flavors         []*kueue.ResourceFlavor `json:"flavors,omitempty"`
	Cohorts         []*kueue.Cohort         `json:"cohorts,omitempty"`
	ClusterQueues   []*kueue.ClusterQueue   `json:"clusterQueues,omitempty"`
	LocalQueues     []*kueue.LocalQueue     `json:"localQueues,omitempty"`
	AdmissionChecks []*kueue.AdmissionCheck `json:"admissionChecks,omitempty"`
	LimitRanges     []*corev1.LimitRange    `json:"limitRanges,omitempty"`
	Workloads       []*kueue.Workload       `json:"workloads,omitempty"`
	Removed         Removed                 `json:"removed,omitzero"`
}

// Removed are the names of objects that a change removes.
type Removed struct {
	Namespaces      []string               `json:"namespaces,omitempty"`
	Flavors         []string               `json:"flavors,omitempty"`
	Cohorts         []string               `json:"cohorts,omitempty"`
	ClusterQueues   []string               `json:"clusterQueues,omitempty"`
	LocalQueues     []types.NamespacedName `json:"localQueues,omitempty"`
	AdmissionChecks []string               `json:"admissionChecks,omitempty"`
	LimitRanges     []types.NamespacedName `json:"limitRanges,omitempty"`
	Workloads       []types.NamespacedName `json:"workloads,omitempty"`
}

// Apply returns s with the change. It shares all objects that the change leaves as
// they are.
func (c *Change) Apply(s *Snapshot) *Snapshot {
	next := *s
	if c.Configuration != nil {
		next.Configuration = *c.Configuration
	}
	next.Namespaces = replaced(s.Namespaces, c.Namespaces, c.Removed.Namespaces, (*corev1.Namespace).GetName)
	next.Flavors = replaced(s.Flavors, c.Flavors, c.Removed.Flavors, (*kueue.ResourceFlavor).GetName)
	next.Cohorts = replaced(s.Cohorts, c.Cohorts, c.Removed.Cohorts, (*kueue.Cohort).GetName)
	next.ClusterQueues = replaced(s.ClusterQueues, c.ClusterQueues, c.Removed.ClusterQueues, (*kueue.ClusterQueue).GetName)
	next.AdmissionChecks = replaced(s.AdmissionChecks, c.AdmissionChecks, c.Removed.AdmissionChecks, (*kueue.AdmissionCheck).GetName)
	next.LocalQueues = replaced(s.LocalQueues, c.LocalQueues, c.Removed.LocalQueues, namespaced)
	next.LimitRanges = replaced(s.LimitRanges, c.LimitRanges, c.Removed.LimitRanges, namespaced)
	next.Workloads = replaced(s.Workloads, c.Workloads, c.Removed.Workloads, namespaced)
	return &next
}

// replaced returns all with some replaced or added and others removed, by their
// names; all itself if there is nothing to do.
func replaced[T any, K comparable](all, replacements []T, removed []K, name func(T) K) []T {
	if len(replacements) == 0 && len(removed) == 0 {
		return all
	}
	dropped := make(map[K]bool, len(removed))
	for _, key := range removed {
		dropped[key] = true
	}
	by := make(map[K]T, len(replacements))
	for _, o := range replacements {
		by[name(o)] = o
	}
	next := make([]T, 0, len(all)+len(replacements))
	for _, o := range all {
		key := name(o)
		if with, ok := by[key]; ok {
			delete(by, key)
			o = with
		} else if dropped[key] {
			continue
		}
		next = append(next, o)
	}
	for _, o := range replacements {
		if key := name(o); len(by) > 0 {
			if _, isNew := by[key]; isNew {
				delete(by, key)
				next = append(next, o)
			}
		}
	}
	return next
}

// Empty reports whether a change changes nothing.
func (c *Change) Empty() bool { return reflect.DeepEqual(*c, Change{}) }

// Difference returns the change that turns one snapshot into another. Objects are
// the same if they are the same pointer: caches replace what changes.
func Difference(from, to *Snapshot) Change {
	var c Change
	if !reflect.DeepEqual(from.Configuration, to.Configuration) {
		c.Configuration = &to.Configuration
	}
	c.Namespaces, c.Removed.Namespaces = difference(from.Namespaces, to.Namespaces, (*corev1.Namespace).GetName)
	c.Flavors, c.Removed.Flavors = difference(from.Flavors, to.Flavors, (*kueue.ResourceFlavor).GetName)
	c.Cohorts, c.Removed.Cohorts = difference(from.Cohorts, to.Cohorts, (*kueue.Cohort).GetName)
	c.ClusterQueues, c.Removed.ClusterQueues = difference(from.ClusterQueues, to.ClusterQueues, (*kueue.ClusterQueue).GetName)
	c.AdmissionChecks, c.Removed.AdmissionChecks = difference(from.AdmissionChecks, to.AdmissionChecks, (*kueue.AdmissionCheck).GetName)
	c.LocalQueues, c.Removed.LocalQueues = difference(from.LocalQueues, to.LocalQueues, namespaced)
	c.LimitRanges, c.Removed.LimitRanges = difference(from.LimitRanges, to.LimitRanges, namespaced)
	c.Workloads, c.Removed.Workloads = difference(from.Workloads, to.Workloads, namespaced)
	return c
}

func difference[T comparable, K comparable](from, to []T, name func(T) K) (changed []T, removed []K) {
	before := make(map[K]T, len(from))
	for _, o := range from {
		before[name(o)] = o
	}
	for _, o := range to {
		key := name(o)
		if before[key] != o {
			changed = append(changed, o)
		}
		delete(before, key)
	}
	for _, o := range from { // in order
		if key := name(o); len(before) > 0 {
			if _, deleted := before[key]; deleted {
				removed = append(removed, key)
			}
		}
	}
	return changed, removed
}

func namespaced[T metav1.Object](o T) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Snapshot is what Kueue's scheduler reads of a cluster, as of one moment. The
// objects are read only: a change replaces them.
type Snapshot struct {
	Time time.Time `json:"time"`
	// KueueVersion is that of the cluster, such as v0.19.2; empty if unknown.
	KueueVersion    string                  `json:"kueueVersion,omitempty"`
	Configuration   Configuration           `json:"configuration"`
	Namespaces      []*corev1.Namespace     `json:"namespaces,omitempty"`
	Flavors         []*kueue.ResourceFlavor `json:"flavors,omitempty"`
	Cohorts         []*kueue.Cohort         `json:"cohorts,omitempty"`
	ClusterQueues   []*kueue.ClusterQueue   `json:"clusterQueues,omitempty"`
	LocalQueues     []*kueue.LocalQueue     `json:"localQueues,omitempty"`
	AdmissionChecks []*kueue.AdmissionCheck `json:"admissionChecks,omitempty"`
	LimitRanges     []*corev1.LimitRange    `json:"limitRanges,omitempty"`
	Workloads       []*kueue.Workload       `json:"workloads,omitempty"`
	// Omitted is what decides on admission in the cluster and not in a simulation.
	Omitted []Omission `json:"omitted,omitempty"`
}

// Omission is a part of Kueue that is not simulated.
type Omission string

// The omissions.
const (
	OmittedTopology      Omission = "Topology"             // placement of pods on nodes close to each other
	OmittedChecks        Omission = "AdmissionChecks"      // all are passed at once
	OmittedElasticSlices Omission = "ElasticSlices"        // that replace each other
	OmittedUsageHistory  Omission = "AdmissionFairSharing" // past usage of LocalQueues
	OmittedDevices       Omission = "DynamicResources"     // devices that pods claim
	OmittedOverhead      Omission = "RuntimeClasses"       // overhead of pods that only their RuntimeClass has
	OmittedTasks         Omission = "Tasks"                // those that a question hardly depends on, see Condensed
)

// Configuration is the part of Kueue's configuration that decides on admission and
// preemption.
type Configuration struct {
	FairSharing  *config.FairSharing `json:"fairSharing,omitempty"`
	FeatureGates map[string]bool     `json:"featureGates,omitempty"`
	// Resources has the excluded prefixes and the transformations of requests.
	Resources *config.Resources `json:"resources,omitempty"`
	// RequeuingTimestamp orders Workloads whose pods were not ready in time.
	RequeuingTimestamp config.RequeuingTimestamp `json:"requeuingTimestamp,omitempty"`
}

// WorkloadKey returns the key of a Workload in outcomes: namespace/name.
func WorkloadKey(w *kueue.Workload) string { return w.Namespace + "/" + w.Name }

// TriedInEachCycle reports whether Kueue's scheduler tries a Workload in each cycle, by
// the message of its condition QuotaReserved: another Workload of the same cycle took
// the quota that it could have had. Its reason does not differ.
func TriedInEachCycle(message string) bool {
	return strings.HasPrefix(message, "Workload no longer fits after processing another workload") ||
		strings.HasPrefix(message, "Workload has overlapping preemption targets with another workload")
}
