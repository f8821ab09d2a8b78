package simulate

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

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
