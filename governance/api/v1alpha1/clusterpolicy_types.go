package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterPolicyName is the name of the one ClusterPolicy.
const ClusterPolicyName = "default"

// The defaults of the backoff of a requeued task, in seconds.
const (
	DefaultBackoffBaseSeconds = 60
	DefaultBackoffMaxSeconds  = 3600
)

// TaskPrioritization sets the order of waiting tasks.
// +kubebuilder:validation:Enum=TaskRanking;FirstComeFirstServe
type TaskPrioritization string

// The ways to prioritize tasks.
const (
	TaskRanking         TaskPrioritization = "TaskRanking"
	FirstComeFirstServe TaskPrioritization = "FirstComeFirstServe"
)

// IdleComputeStrategy sets how idle compute is shared between teams.
// +kubebuilder:validation:Enum=FairShare;FirstComeFirstServe
type IdleComputeStrategy string

// The ways to share idle compute.
const (
	IdleFairShare           IdleComputeStrategy = "FairShare"
	IdleFirstComeFirstServe IdleComputeStrategy = "FirstComeFirstServe"
)

// Enforcement sets whether team namespaces reject jobs without a queue.
// +kubebuilder:validation:Enum=RequireQueue;None
type Enforcement string

// The kinds of enforcement.
const (
	RequireQueue    Enforcement = "RequireQueue"
	EnforcementNone Enforcement = "None"
)

// PreemptionLoops is what Kuota does about a preemption loop: Kueue preempts a
// workload again and again for another that it does not admit.
// +kubebuilder:validation:Enum=Break;Warn
type PreemptionLoops string

// The ways to deal with preemption loops.
const (
	// BreakLoops keeps the preempted workload out of admission until the workload
	// that it is preempted for is admitted.
	BreakLoops PreemptionLoops = "Break"
	// WarnOfLoops reports loops and changes no workload.
	WarnOfLoops PreemptionLoops = "Warn"
)

// ClusterPolicy sets the priority of tasks and how idle compute is shared. There
// is one, named default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="there is one cluster policy, and its name is default"
// +kubebuilder:printcolumn:name="Prioritization",type=string,JSONPath=`.spec.taskPrioritization`
// +kubebuilder:printcolumn:name="Idle compute",type=string,JSONPath=`.spec.idleCompute.strategy`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec ClusterPolicySpec `json:"spec,omitzero"`
	// +optional
	Status ClusterPolicyStatus `json:"status,omitzero"`
}

// ClusterPolicySpec is the desired state of the cluster.
// +kubebuilder:validation:XValidation:rule="has(self.cohortName) == has(oldSelf.cohortName)",message="the cohort cannot be changed while there is a policy"
// +kubebuilder:validation:XValidation:rule="!has(self.numericPriorities) || !self.numericPriorities || !has(self.priorityClasses) || !self.priorityClasses.exists(c, c.name.matches('^[0-9]{1,2}$'))",message="a priority class whose name is a number from 0 to 99 would be taken for a priority by number",fieldPath=".numericPriorities"
type ClusterPolicySpec struct {
	// TaskPrioritization is TaskRanking, by the weight of priority classes, or
	// FirstComeFirstServe.
	// +optional
	// +kubebuilder:default=FirstComeFirstServe
	TaskPrioritization TaskPrioritization `json:"taskPrioritization,omitempty"`

	// PriorityClasses rank tasks. Under FirstComeFirstServe they are kept and their
	// weights have no effect.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(a, !self.exists(b, b.name == a.name + '-priority'))",message="two priority classes would be the same object: a name and the same name with -priority appended"
	PriorityClasses []PriorityClass `json:"priorityClasses,omitempty"`

	// NumericPriorities lets tasks name a number from 0 to 99 instead of a priority class,
	// by kuota.dev/priority. It counts as a weight.
	// +optional
	// +kubebuilder:default=false
	NumericPriorities bool `json:"numericPriorities,omitempty"`

	// CohortName is the cohort of all teams that share idle compute. The default is
	// the cohort that the console is configured with.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the cohort cannot be changed while there is a policy"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="a cohort name has lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"
	CohortName string `json:"cohortName,omitempty"`

	// IdleCompute sets how compute that its team does not use is shared.
	// +optional
	// +kubebuilder:default={}
	IdleCompute IdleCompute `json:"idleCompute,omitzero"`

	// GangScheduling starts all pods of a task together or not at all.
	// +optional
	// +kubebuilder:default={}
	GangScheduling GangScheduling `json:"gangScheduling,omitzero"`

	// AdmissionFairSharing sets how Kueue counts the usage of the shares of each team.
	// Without it, that section of Kueue's configuration stays as it is.
	// +optional
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing,omitempty"`

	// Enforcement sets whether team namespaces reject jobs without a queue, which
	// no quota would limit.
	// +optional
	// +kubebuilder:default=RequireQueue
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// PreemptionLoops is Break, which keeps a workload that Kueue preempts again
	// and again out of admission until the workload that it is preempted for is
	// admitted, or Warn, which reports such loops and changes nothing.
	// +optional
	// +kubebuilder:default=Break
	PreemptionLoops PreemptionLoops `json:"preemptionLoops,omitempty"`

	// Pools group nodes; the first match wins. Every other node belongs to the
	// pool of its instance type.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Pools []Pool `json:"pools,omitempty"`

	// Resources are what quota can be of beside accelerators, vCPU, memory and network
	// devices, and how pages name them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Resources []ListedResource `json:"resources,omitempty"`

	// OverAllocationLimits limit the sum of the quota of all teams in a pool. Quota that
	// exceeds a limit stays, and cannot be raised. Without nodes a pool has no limit.
	// +optional
	// +listType=map
	// +listMapKey=pool
	// +kubebuilder:validation:MaxItems=64
	OverAllocationLimits []OverAllocationLimit `json:"overAllocationLimits,omitempty"`

	// Prices are what hours of compute cost in the usage report. They change nothing in
	// Kueue.
	// +optional
	Prices *Prices `json:"prices,omitempty"`

	// Alerts sets when alerts fire, and who is notified of them.
	// +optional
	Alerts *Alerts `json:"alerts,omitempty"`
}

// ResourceUnit is what one unit of a resource is.
// +kubebuilder:validation:Enum=Count;Bytes
type ResourceUnit string

// The units.
const (
	UnitCount ResourceUnit = "Count" // devices, licenses
	UnitBytes ResourceUnit = "Bytes" // which pages show in GiB
)

// ListedResource is a resource that quota can be of.
// +kubebuilder:validation:XValidation:rule="!(has(self.accelerator) && self.accelerator && self.unit == 'Bytes')",message="accelerators are counted in pieces: set unit to Count",fieldPath=".unit"
type ListedResource struct {
	// Name is the Kubernetes resource, such as google.com/tpu.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]{0,188}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['cpu', 'memory', 'nvidia.com/gpu', 'aws.amazon.com/neurondevice', 'vpc.amazonaws.com/efa'])",message="quota has this resource without being listed: remove it"
	Name string `json:"name"`

	// Label is the word for several of them, such as TPUs; of bytes, what they are of, such
	// as scratch space.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="a label has no line breaks or other control characters"
	Label string `json:"label"`

	// Unit is Count, the default, or Bytes.
	// +optional
	// +kubebuilder:default=Count
	Unit ResourceUnit `json:"unit,omitempty"`

	// Accelerator counts the resource as an accelerator: in rows of quota, utilization and
	// budgets.
	// +optional
	Accelerator bool `json:"accelerator,omitempty"`
}

// OverAllocationLimit limits the quota in a pool.
type OverAllocationLimit struct {
	// Pool is a pool, or * for all pools that have no limit of their own.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool"`

	// Percent is how much more quota than the nodes of the pool have, such as 0 or 20.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Percent *int32 `json:"percent"`
}

// AllPools is the pool of an OverAllocationLimit for all pools without one.
const AllPools = "*"

// Prices are what hours of compute cost.
type Prices struct {
	// Currency has three capital letters, such as EUR.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	Currency string `json:"currency"`

	// Hourly are the prices. Each holds until a later one of the same pool and resource.
	// +optional
	// +listType=map
	// +listMapKey=pool
	// +listMapKey=resource
	// +listMapKey=from
	// +kubebuilder:validation:MaxItems=256
	Hourly []HourlyPrice `json:"hourly,omitempty"`
}

// HourlyPrice is the price of one device, one vCPU or one GiB for one hour.
type HourlyPrice struct {
	// Pool can be one that does not exist any more.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool"`

	// Resource is a Kubernetes resource, such as nvidia.com/gpu.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// From is the day, in UTC, or the second from which the price holds, such as
	// 2026-10-01 or 2026-10-01T12:00:00Z.
	// +required
	// +kubebuilder:validation:Pattern=`^[2-8][0-9]{3}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$`
	From string `json:"from"`

	// Own is the price of usage up to the nominal quota, such as 2.50.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,6})?$`
	Own string `json:"own"`

	// Borrowed is the price of usage beyond it. Without it, Own holds.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,6})?$`
	Borrowed string `json:"borrowed,omitempty"`
}

// PriorityClass ranks the tasks that name it, and can limit their execution time.
// +kubebuilder:validation:XValidation:rule="!has(self.defaultTimeLimitSeconds) || !has(self.maximumTimeLimitSeconds) || self.defaultTimeLimitSeconds <= self.maximumTimeLimitSeconds",message="the default time limit is longer than the maximum time limit",fieldPath=".defaultTimeLimitSeconds"
type PriorityClass struct {
	// Name is a DNS label of at most 40 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a priority class name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	Name string `json:"name"`

	// Weight is from 0 (lowest) to 100 (highest).
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight"`

	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// DefaultTimeLimitSeconds is the execution time after which Kueue stops a task that
	// names no time limit itself. Without it, MaximumTimeLimitSeconds is the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	DefaultTimeLimitSeconds *int32 `json:"defaultTimeLimitSeconds,omitempty"`

	// MaximumTimeLimitSeconds is the longest time limit that a task can name.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	MaximumTimeLimitSeconds *int32 `json:"maximumTimeLimitSeconds,omitempty"`
}

// TimeLimits returns the default and the maximum of the time limits of tasks, in seconds;
// 0 for none. A class with a maximum always has a default.
func (c *PriorityClass) TimeLimits() (byDefault, maximum int32) {
	if c.MaximumTimeLimitSeconds != nil {
		maximum = *c.MaximumTimeLimitSeconds
	}
	if c.DefaultTimeLimitSeconds != nil {
		return *c.DefaultTimeLimitSeconds, maximum
	}
	return maximum, maximum
}

// IdleCompute sets how compute that its team does not use is shared.
type IdleCompute struct {
	// Strategy is FairShare, by the weights of the teams, or FirstComeFirstServe.
	// +optional
	// +kubebuilder:default=FairShare
	Strategy IdleComputeStrategy `json:"strategy,omitempty"`

	// ShareUnallocated lets teams borrow compute that is not allocated to any team.
	// +optional
	// +kubebuilder:default=false
	ShareUnallocated bool `json:"shareUnallocated,omitempty"`
}

// GangScheduling starts all pods of a task together or not at all.
type GangScheduling struct {
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Timeout is how long the pods of an admitted task can take to be ready.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="timeout is 0s or longer, such as 5m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// RecoveryTimeout is how long a pod of a running task can be not ready; 0s means
	// no limit.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="recoveryTimeout is 0s or longer, such as 5m"
	RecoveryTimeout *metav1.Duration `json:"recoveryTimeout,omitempty"`

	// BlockAdmission admits no other task until the pods of the last one are ready.
	// +optional
	// +kubebuilder:default=false
	BlockAdmission bool `json:"blockAdmission,omitempty"`

	// Requeuing sets when a task whose pods were not ready in time is requeued.
	// +optional
	// +kubebuilder:default={}
	Requeuing Requeuing `json:"requeuing,omitzero"`
}

// Requeuing sets when a task whose pods were not ready in time is requeued.
// +kubebuilder:validation:XValidation:rule="!has(self.backoffBaseSeconds) || !has(self.backoffMaxSeconds) || self.backoffBaseSeconds <= self.backoffMaxSeconds",message="backoffMaxSeconds is smaller than backoffBaseSeconds",fieldPath=".backoffMaxSeconds"
type Requeuing struct {
	// Timestamp is the time by which a requeued task is ordered.
	// +optional
	// +kubebuilder:default=Eviction
	// +kubebuilder:validation:Enum=Eviction;Creation
	Timestamp string `json:"timestamp,omitempty"`

	// BackoffLimitCount is how often a task is requeued; omitted means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BackoffLimitCount *int32 `json:"backoffLimitCount,omitempty"`

	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	BackoffBaseSeconds *int32 `json:"backoffBaseSeconds,omitempty"`

	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	BackoffMaxSeconds *int32 `json:"backoffMaxSeconds,omitempty"`
}

// AdmissionFairSharing sets how Kueue counts the usage of the shares of each team. It
// has no effect on teams without shares.
type AdmissionFairSharing struct {
	// UsageHalfLifeTime is the time after which usage counts half. It should be ten
	// times as long as a usual task.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="usageHalfLifeTime is 0s or longer, such as 5m"
	UsageHalfLifeTime *metav1.Duration `json:"usageHalfLifeTime,omitempty"`

	// UsageSamplingInterval is how often Kueue adds up usage. A task counts as if it
	// had already run for this time when it is admitted.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="usageSamplingInterval is 0s or longer, such as 5m"
	UsageSamplingInterval *metav1.Duration `json:"usageSamplingInterval,omitempty"`

	// ResourceWeights are what one unit of a resource counts: one device, one vCPU or
	// one byte of memory. Of the other resources, accelerators count 1 and the rest 0.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	ResourceWeights map[string]ResourceWeight `json:"resourceWeights,omitempty"`
}

// ResourceWeight is what one unit of a resource counts.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=1000
type ResourceWeight int32

// The defaults of AdmissionFairSharing. AWS Batch bounds the half-life by ten minutes
// and a week; the tasks of a team that trains models take hours.
const (
	DefaultUsageHalfLifeTime     = 24 * time.Hour
	DefaultUsageSamplingInterval = 5 * time.Minute
)

// Pool is a group of nodes that quota is allocated in.
type Pool struct {
	// Name is a DNS label of at most 40 characters that is no instance type.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a pool name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	Name string `json:"name"`

	// +required
	Match PoolMatch `json:"match"`
}

// PoolMatch selects the nodes of a pool. Exactly one field is set.
// +kubebuilder:validation:XValidation:rule="[has(self.accelerator), has(self.instanceFamily), has(self.instanceTypes), has(self.nodeLabels)].filter(x, x).size() == 1",message="a pool matches by exactly one of accelerator, instanceFamily, instanceTypes and nodeLabels"
type PoolMatch struct {
	// Accelerator is a model, such as H100.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Accelerator string `json:"accelerator,omitempty"`

	// InstanceFamily is the part of the instance type before the size, such as ml.g5.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	InstanceFamily string `json:"instanceFamily,omitempty"`

	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	InstanceTypes []string `json:"instanceTypes,omitempty"`

	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
}

// Condition types of a ClusterPolicy. Ready summarizes the others. Each of them is one
// component, and False with a sentence while the cluster does not match the policy.
const (
	ConditionPriorityClasses  = "PriorityClasses"  // the classes, their values, and how tasks are ranked
	ConditionFairShare        = "FairShare"        // how idle compute is shared, in Kueue's configuration
	ConditionGangScheduling   = "GangScheduling"   // gang scheduling, in Kueue's configuration
	ConditionShareUnallocated = "ShareUnallocated" // the Cohort that lends unallocated compute
	ConditionPools            = "Pools"            // pools, and the labels of their nodes
	ConditionEnforcement      = "Enforcement"      // the admission policies that reject jobs without a queue
)

// ClusterPolicyStatus is the observed state of the cluster.
type ClusterPolicyStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ranking is how tasks are ranked now, and the progress of a change.
	// +optional
	Ranking *Ranking `json:"ranking,omitempty"`

	// Pools are the active pools. They differ from spec.pools while a change would
	// remove a pool in which a team has quota.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Pools []Pool `json:"pools,omitempty"`

	// ReportedTypes are the largest capacities that nodes reported for instance
	// types that are not in Kuota's table. Quota of such a type is based on them.
	// +optional
	// +listType=map
	// +listMapKey=instanceType
	ReportedTypes []ReportedType `json:"reportedTypes,omitempty"`

	// Kueue is the observed configuration of Kueue.
	// +optional
	Kueue *KueueStatus `json:"kueue,omitempty"`
}

// RankingStep is the progress of a change of the ranking.
// +kubebuilder:validation:Enum=Settled;Pausing;Rewriting
type RankingStep string

// The steps of a change of the ranking, in their order. Kueue rewrites the
// priority of tasks one by one, and would preempt tasks of the same class
// midway; so preemption by priority is off meanwhile.
const (
	RankingSettled   RankingStep = "Settled"   // nothing is changing
	RankingPausing   RankingStep = "Pausing"   // preemption by priority is being switched off in every queue
	RankingRewriting RankingStep = "Rewriting" // priority classes have their new values, and tasks are updated
)

// Ranking is how tasks are ranked now.
type Ranking struct {
	// The value of active. Deprecated: read active. The console writes and reads this field
	// for one version, because replicas of earlier versions write no other.
	// +optional
	Active TaskPrioritization `json:"inForce,omitempty"`
	// The active prioritization.
	// +optional
	ActiveCopy TaskPrioritization `json:"active,omitempty"`
	// +required
	Step RankingStep `json:"step"`
	// Since is the time at which the step began.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// Tasks is the number of unfinished tasks that get a new priority, and
	// Remaining the number of them that still have the old one.
	// +optional
	Tasks int32 `json:"tasks,omitempty"`
	// +optional
	Remaining int32 `json:"remaining,omitempty"`
}

// KueueStatus is the observed configuration of Kueue.
type KueueStatus struct {
	// Version is the version of Kueue, such as v0.19.2; empty when unknown.
	// +optional
	Version string `json:"version,omitempty"`
	// Account is the username of Kueue's service account.
	// +optional
	Account string `json:"account,omitempty"`
	// Integrations are the kinds of jobs that Kueue manages, as its configuration
	// lists them.
	// +optional
	// +listType=atomic
	Integrations []string `json:"integrations,omitempty"`
	// DefaultPriorityClass is the WorkloadPriorityClass with which Kueue labels jobs
	// that have none, if it exists; empty if Kueue labels no jobs.
	// +optional
	DefaultPriorityClass string `json:"defaultPriorityClass,omitempty"`
	// WaitForPodsReady is how Kueue waits for the pods of admitted tasks, with Kueue's
	// defaults; absent while it does not wait.
	// +optional
	WaitForPodsReady *WaitForPodsReady `json:"waitForPodsReady,omitempty"`
	// Patch lists the changes to make to Kueue's configuration by hand, if the console
	// has no permission or runs with --manage-kueue=false; empty when nothing differs.
	// +optional
	Patch string `json:"patch,omitempty"`
}

// WaitForPodsReady is how Kueue waits for the pods of admitted tasks.
type WaitForPodsReady struct {
	// Timeout is after how long Kueue evicts a task whose pods are not ready.
	// +required
	Timeout metav1.Duration `json:"timeout"`
	// BlockAdmission is whether Kueue admits no other task until they are ready.
	// +optional
	BlockAdmission bool `json:"blockAdmission,omitempty"`
}

// ReportedType is the largest capacity that nodes of one type reported.
type ReportedType struct {
	// +required
	InstanceType string `json:"instanceType"`
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// ClusterPolicyList is a list of ClusterPolicy.
// +kubebuilder:object:root=true
type ClusterPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPolicy `json:"items"`
}

// PodsReady returns how Kueue waits for the pods of admitted tasks: as observed, or, where
// Kueue's configuration cannot be read, as the policy sets it. nil if Kueue does not wait.
func (p *ClusterPolicy) PodsReady() *WaitForPodsReady {
	switch {
	case p == nil:
		return nil
	case p.Status.Kueue != nil:
		return p.Status.Kueue.WaitForPodsReady
	case !p.Spec.GangScheduling.Enabled:
		return nil
	}
	wait := &WaitForPodsReady{BlockAdmission: p.Spec.GangScheduling.BlockAdmission, Timeout: metav1.Duration{Duration: 5 * time.Minute}}
	if t := p.Spec.GangScheduling.Timeout; t != nil {
		wait.Timeout = *t
	}
	return wait
}
