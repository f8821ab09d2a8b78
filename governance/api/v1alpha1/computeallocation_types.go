package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SharingStrategy sets whether a team lends and borrows idle compute.
// +kubebuilder:validation:Enum=LendAndBorrow;Lend;DontLend
type SharingStrategy string

// The sharing strategies.
const (
	LendAndBorrow SharingStrategy = "LendAndBorrow" // lends and borrows
	Lend          SharingStrategy = "Lend"          // lends, never borrows
	DontLend      SharingStrategy = "DontLend"      // neither lends nor borrows
)

// WithinTeam sets whether a team's tasks preempt lower-priority tasks of the same team.
// +kubebuilder:validation:Enum=LowerPriority;Never
type WithinTeam string

// The kinds of preemption within a team.
const (
	PreemptLowerPriority WithinTeam = "LowerPriority"
	PreemptNever         WithinTeam = "Never"
)

// Activation sets whether a team's queue admits tasks and keeps admitted ones.
// +kubebuilder:validation:Enum=Active;Hold;Drain
type Activation string

// The states a team's queue can be put in.
const (
	Active Activation = "Active" // admits and keeps tasks
	Hold   Activation = "Hold"   // admitted tasks continue, none is admitted
	Drain  Activation = "Drain"  // admitted tasks are requeued
)

// Management sets whether Kuota writes the Kueue objects of a team.
// +kubebuilder:validation:Enum=Manage;Observe
type Management string

// The kinds of management.
const (
	Manage  Management = "Manage"  // writes the objects, and corrects manual changes
	Observe Management = "Observe" // shows them, and writes nothing
)

// The queueing strategies, which are Kueue's.
const (
	BestEffortFIFO = "BestEffortFIFO" // tasks that fit are admitted, also behind one that does not
	StrictFIFO     = "StrictFIFO"     // the first task that does not fit blocks those behind it
)

// DefaultBorrowLimitPercent applies when an allocation sets no limit.
const DefaultBorrowLimitPercent = 50

// Condition types of a ComputeAllocation.
const (
	ConditionReady          = "Ready"          // all objects of the allocation exist and match it
	ConditionQueueActive    = "QueueActive"    // Kueue admits tasks through the team's ClusterQueue
	ConditionWithinCapacity = "WithinCapacity" // the pools have the capacity for the quota of all teams
)

// ReasonBlocked is the reason of Ready=False while an object that
// Kuota does not manage has a name that the allocation needs.
const ReasonBlocked = "Blocked"

// ReasonOverAllocated is the reason of Ready=False while the policy allows no more quota in
// a pool. The quota that was applied last stays.
const ReasonOverAllocated = "OverAllocated"

// ReasonDepartment is the reason of Ready=False while the team's department does not exist,
// or has not the quota that the team is to have. The quota that was applied last stays.
const ReasonDepartment = "Department"

// ComputeAllocation sets the quota, sharing and members of one team. Its name is
// the name of the team.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a team name has at most 40 lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['new', 'cluster'])",message="the team names new and cluster are reserved"
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.sharing.strategy`
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.spec.fairShareWeight`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ComputeAllocation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ComputeAllocationSpec `json:"spec"`
	// +optional
	Status ComputeAllocationStatus `json:"status,omitzero"`
}

// ComputeAllocationSpec is the desired state of a team.
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == has(oldSelf.__namespace__)",message="the namespace cannot be changed; create a new allocation instead"
// +kubebuilder:validation:XValidation:rule="has(self.clusterQueueName) == has(oldSelf.clusterQueueName) && has(self.localQueueName) == has(oldSelf.localQueueName) && has(self.cohortName) == has(oldSelf.cohortName)",message="clusterQueueName, localQueueName and cohortName cannot be changed; create a new allocation instead"
// +kubebuilder:validation:XValidation:rule="has(self.clusterQueueName) || !(has(self.localQueueName) || has(self.cohortName) || has(self.coveredResources) || has(self.management) && self.management == 'Observe')",message="localQueueName, cohortName, coveredResources and Observe describe an existing ClusterQueue: set clusterQueueName too"
// +kubebuilder:validation:XValidation:rule="!has(self.cohortName) || size(self.cohortName) > 0 || !has(self.sharing) || has(self.sharing.unlimited) && self.sharing.unlimited",message="a ClusterQueue without a cohort has no borrow limits: set unlimited borrowing",fieldPath=".sharing"
// +kubebuilder:validation:XValidation:rule="!self.namespaceCeiling || !has(self.sharing) || !has(self.sharing.unlimited) || !self.sharing.unlimited",message="a namespace ceiling needs a borrow limit: give one, or leave the ceiling out",fieldPath=".namespaceCeiling"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || !has(self.management) || self.management != 'Observe'",message="Kuota writes nothing for an observed ClusterQueue: remove the windows, or set Manage",fieldPath=".windows"
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !has(self.management) || self.management != 'Observe'",message="Kuota writes nothing for an observed ClusterQueue: remove the budget, or set Manage",fieldPath=".budget"
// +kubebuilder:validation:XValidation:rule="!has(self.department) || !has(self.cohortName)",message="the cohort of a team in a department is that of the department: remove cohortName or department",fieldPath=".department"
// +kubebuilder:validation:XValidation:rule="!has(self.shares) || !has(self.clusterQueueName)",message="shares need a ClusterQueue of Kuota's own; remove clusterQueueName or the shares",fieldPath=".shares"
type ComputeAllocationSpec struct {
	// DisplayName is shown below the team name. It is one line.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="a display name has no line breaks or other control characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x{80}-\x{9F}\x{61C}\x{200E}\x{200F}\x{2028}-\x{202E}\x{2066}-\x{2069}\x{FEFF}]')`,message="a display name has no line breaks, and no characters that change the direction of writing"
	DisplayName string `json:"displayName,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// Activation is Active, Hold (admitted tasks continue, none is admitted) or
	// Drain (admitted tasks are requeued).
	// +optional
	// +kubebuilder:default=Active
	Activation Activation `json:"activation,omitempty"`

	// Namespace is where the team's tasks run. The default is the configured
	// prefix and the team's name. An existing namespace that is set here is
	// managed by Kuota from then on, and never deleted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kube-') && !(self in ['default', 'kueue-system', 'kuota-system'])",message="that namespace is reserved for the cluster; choose another"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the namespace cannot be changed; create a new allocation instead"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	Namespace string `json:"namespace,omitempty"`

	// Members can submit and see the tasks of the team.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Members []Member `json:"members,omitempty"`

	// Department is the department that the team is in. Its quota is part of that of the
	// department. Without it, the team is directly in the cohort that all teams share.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Department string `json:"department,omitempty"`

	// FairShareWeight is from 0, the default, to 100. It has an effect
	// while the cluster policy shares idle compute by fair share.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FairShareWeight int32 `json:"fairShareWeight,omitempty"`

	// Quota is the quota of the team, in order of preference.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, has(a.instanceType) == has(b.instanceType) && (has(a.instanceType) ? a.instanceType == b.instanceType : has(b.pool) && a.pool == b.pool)))",message="the same instance type or pool is in two rows; combine them"
	Quota []QuotaRow `json:"quota,omitempty"`

	// Sharing sets what the team lends and borrows.
	// +optional
	// +kubebuilder:default={}
	Sharing Sharing `json:"sharing,omitzero"`

	// +optional
	// +kubebuilder:default={}
	Preemption Preemption `json:"preemption,omitzero"`

	// NamespaceCeiling adds a ResourceQuota of quota and borrow limit, as
	// an upper bound for all pods of the namespace.
	// +optional
	// +kubebuilder:default=false
	NamespaceCeiling bool `json:"namespaceCeiling,omitempty"`

	// Ceiling are upper bounds of the requests of all pods of the namespace, apart from quota
	// and borrow limit, in the ResourceQuota of NamespaceCeiling and in place of what that sets
	// for the same resources. The resource pods counts pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.name in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || r.name.contains('/'))",message="a ceiling is on cpu, memory, ephemeral-storage, pods or a resource with a domain, such as nvidia.com/gpu: Kubernetes counts no others"
	// +kubebuilder:validation:XValidation:rule="self.all(r, type(r.quantity) == int ? r.quantity >= 0 : true)",message="an amount is at least 0"
	Ceiling []ResourceQuantity `json:"ceiling,omitempty"`

	// DefaultQueue adds a LocalQueue named default, so that a job
	// without the queue label joins the team's queue.
	// +optional
	// +kubebuilder:default=false
	DefaultQueue bool `json:"defaultQueue,omitempty"`

	// DefaultPriorityClass is the priority class of the tasks of the team's queue that name none:
	// the name of a class of the cluster policy. The API server sets it from Kubernetes 1.36 on,
	// and the console always.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a class name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	DefaultPriorityClass string `json:"defaultPriorityClass,omitempty"`

	// Shares are queues of the team beside its own. Each has a LocalQueue. Those without
	// quota divide the team's quota: Kueue admits the tasks of the share first that used the
	// least by its weight, whatever the priority of the tasks, if its configuration enables
	// admissionFairSharing.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Shares []Share `json:"shares,omitempty"`

	// Windows replace quota, sharing or activation between two times, once or each
	// week. They do not overlap.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Windows []Window `json:"windows,omitempty"`

	// Budget limits what the team uses in each week, month or quarter.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// Management is Manage, the default, or Observe: Kuota then shows the
	// ClusterQueue that clusterQueueName names, and writes nothing.
	// +optional
	Management Management `json:"management,omitempty"`

	// ClusterQueueName is a ClusterQueue that existed before the allocation. Kuota
	// takes it over if the allocation describes it, so that its spec does not change.
	// From then on Kuota sets its quota, limits, cohort, queueing strategy, stop
	// policy, preemption and fair-share weight, and leaves all other fields as they
	// are. The default is a ClusterQueue of Kuota's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the ClusterQueue cannot be changed; create a new allocation instead"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="a ClusterQueue name has lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"
	ClusterQueueName string `json:"clusterQueueName,omitempty"`

	// LocalQueueName is the LocalQueue of the team. The default is a name of Kuota's
	// own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the LocalQueue cannot be changed; create a new allocation instead"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="a LocalQueue name has lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"
	LocalQueueName string `json:"localQueueName,omitempty"`

	// CohortName is the cohort of clusterQueueName; empty for none. The default is
	// the cohort of the cluster policy.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the cohort cannot be changed; create a new allocation instead"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$')",message="a cohort name has lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"
	CohortName *string `json:"cohortName,omitempty"`

	// QueueingStrategy is BestEffortFIFO, the default, or StrictFIFO: the first task
	// of the queue that cannot be admitted then blocks those behind it.
	// +optional
	// +kubebuilder:validation:Enum=BestEffortFIFO;StrictFIFO
	QueueingStrategy string `json:"queueingStrategy,omitempty"`

	// CoveredResources are the resources that clusterQueueName covers, in their
	// order. The default is GPUs, Neuron devices, CPU, memory and network devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	CoveredResources []string `json:"coveredResources,omitempty"`
}

// Observed reports whether Kuota writes nothing for the allocation.
func (s *ComputeAllocationSpec) Observed() bool { return s.Management == Observe }

// Adopted reports whether the ClusterQueue existed before the allocation.
func (s *ComputeAllocationSpec) Adopted() bool { return s.ClusterQueueName != "" }

// OfShare returns what a share with quota is alone: a spec with the quota of the share and
// with what it has of the team's.
func (s *ComputeAllocationSpec) OfShare(share *Share) ComputeAllocationSpec {
	of := ComputeAllocationSpec{
		Activation: s.Activation, Namespace: s.Namespace, Department: s.Department, FairShareWeight: share.Weight, Quota: rowsOf(share.Quota),
		Sharing:    Sharing{Strategy: s.Sharing.Strategy, BorrowLimitPercent: s.Sharing.BorrowLimitPercent, Unlimited: s.Sharing.Unlimited},
		Preemption: s.Preemption, QueueingStrategy: share.QueueingStrategy,
	}
	if share.BorrowLimitPercent != nil && (s.Sharing.Strategy == LendAndBorrow || s.Sharing.Strategy == "") {
		of.Sharing.BorrowLimitPercent, of.Sharing.Unlimited = share.BorrowLimitPercent, false
	}
	return of
}

// Member is a person or a group in a team.
type Member struct {
	// +required
	// +kubebuilder:validation:Enum=User;Group
	Kind string `json:"kind"`

	// Name is the user or group name that the API server sees, with its prefix.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="names that start with system: are reserved by Kubernetes and cannot be members"
	Name string `json:"name"`
}

// QuotaRow is quota of one instance type or pool. Omitted amounts default in
// proportion to one instance.
// +kubebuilder:validation:XValidation:rule="has(self.instanceType) != has(self.pool)",message="a row names either an instanceType or a pool"
// +kubebuilder:validation:XValidation:rule="!has(self.instances) || !(has(self.accelerators) || has(self.vCPU) || has(self.memory) || has(self.partition))",message="set either whole instances or single resources, not both",fieldPath=".instances"
// +kubebuilder:validation:XValidation:rule="!has(self.partition) || !has(self.accelerators)",message="a row has either whole accelerators or a partition of them",fieldPath=".partition"
// +kubebuilder:validation:XValidation:rule="(has(self.instances) && self.instances > 0) || (has(self.accelerators) && self.accelerators > 0) || (has(self.partition) && self.partition.count > 0) || (has(self.vCPU) && (type(self.vCPU) == int ? self.vCPU > 0 : !(self.vCPU in ['0', '0m', '0k', '0.', '0.0', '0.00', '0.000']))) || (has(self.memory) && (type(self.memory) == int ? self.memory > 0 : !(self.memory in ['0', '0Ki', '0Mi', '0Gi', '0Ti', '0Pi', '0k', '0M', '0G', '0T', '0P']))) || has(self.resources)",message="a row needs at least one amount above 0"
type QuotaRow struct {
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType,omitempty"`

	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool,omitempty"`

	Quantities `json:",inline"`
}

// Quantities are the quantities of a row. Omitted ones get a default.
type Quantities struct {
	// Instances is a number of whole instances.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	Instances *int64 `json:"instances,omitempty"`

	// Accelerators is a number of GPUs or Neuron devices.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	Accelerators *int64 `json:"accelerators,omitempty"`

	// VCPU is a number of CPUs in steps of 1m, up to 10 million.
	//
	// The schema is written out, bounds and all, by pattern: the usual one of a
	// quantity allows exponents, and comparing 1e99999999 takes the API server
	// a minute; and CEL may not spend that much on a text of unknown length.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^-?(10000000|(0|[1-9][0-9]{0,6})([.][0-9]{0,3})?|10000000000m|(0|[1-9][0-9]{0,9})m|0k|[1-9][0-9]{0,3}([.][0-9]{0,6})?k|([1-9]|10)M|[0-9]{1,10}([.][0-9]{0,9})?[KMGTPE]i)$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int || !self.endsWith('i')",message="vCPU is counted in plain numbers such as 48 or 500m, not in binary units such as Ki"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000000 : !self.startsWith('-')",message="vCPU must be a number from 0 to 10,000,000"
	VCPU *resource.Quantity `json:"vCPU,omitempty"`

	// Memory is an amount of memory, up to 10 million GiB. Its schema is
	// written out for the same reason.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^-?((0|[1-9][0-9]{0,15})|(0|[1-9][0-9]{0,12})(k|Ki)|(0|[1-9][0-9]{0,9})(M|Mi)|10000000Gi|(0|[1-9][0-9]{0,6})(G|Gi)|(0|[1-9][0-9]{0,3})(T|Ti)|[0-9](P|Pi)|([1-9][0-9]{0,3}[.][0-9]{1,9}|0[.]0{0,8}[1-9][0-9]{0,8})([KMGT]i|[kMGT]))$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10737418240000000 : !self.startsWith('-')",message="memory must be from 0 to 10,000,000Gi"
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Partition is a number of MIG partitions of accelerators.
	// +optional
	Partition *Partition `json:"partition,omitempty"`

	// Resources are quantities of other resources, such as licenses. They have no defaults.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Resources []ResourceQuantity `json:"resources,omitempty"`
}

// ResourceQuantity is a quantity of one resource.
type ResourceQuantity struct {
	// Name is the Kubernetes resource, such as example.com/license.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]{0,188}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Name string `json:"name"`

	// Quantity is a whole number, or an amount of bytes up to 10 million GiB. Its schema is
	// written out as that of vCPU; a number without quotes is checked with the whole row.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((0|[1-9][0-9]{0,15})|(0|[1-9][0-9]{0,12})(k|Ki)|(0|[1-9][0-9]{0,9})(M|Mi)|10000000Gi|(0|[1-9][0-9]{0,6})(G|Gi)|(0|[1-9][0-9]{0,3})(T|Ti)|[0-9](P|Pi)|([1-9][0-9]{0,3}[.][0-9]{1,9}|0[.]0{0,8}[1-9][0-9]{0,8})([KMGT]i|[kMGT]))$`
	Quantity resource.Quantity `json:"quantity"`
}

// Partition is a number of MIG partitions of one profile.
type Partition struct {
	// Profile is NVIDIA's name of the MIG profile, such as mig-1g.5gb.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^mig-([1-7])g[.][0-9]{1,4}gb([+.-][a-z]{1,9}([.][a-z]{1,9})?)?$')",message="a partition profile looks like mig-1g.5gb"
	Profile string `json:"profile"`

	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	Count int64 `json:"count"`
}

// Sharing sets what a team lends and borrows.
// +kubebuilder:validation:XValidation:rule="self.strategy == 'LendAndBorrow' || !has(self.borrowLimitPercent)",message="a borrow limit needs the strategy LendAndBorrow: set it, or remove the limit",fieldPath=".borrowLimitPercent"
// +kubebuilder:validation:XValidation:rule="self.strategy == 'LendAndBorrow' || !(has(self.unlimited) && self.unlimited)",message="unlimited borrowing needs the strategy LendAndBorrow: set it, or remove unlimited",fieldPath=".unlimited"
// +kubebuilder:validation:XValidation:rule="self.strategy == 'LendAndBorrow' || !has(self.borrowLimits)",message="borrow limits need the strategy LendAndBorrow: set it, or remove the limits",fieldPath=".borrowLimits"
// +kubebuilder:validation:XValidation:rule="!(has(self.unlimited) && self.unlimited && has(self.borrowLimitPercent))",message="borrowing is either unlimited or limited by a percentage",fieldPath=".unlimited"
type Sharing struct {
	// +optional
	// +kubebuilder:default=LendAndBorrow
	Strategy SharingStrategy `json:"strategy,omitempty"`

	// BorrowLimitPercent is how much the team may borrow, in percent of its
	// quota, per pool and resource. The default is 50.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	BorrowLimitPercent *int32 `json:"borrowLimitPercent,omitempty"`

	// Unlimited lets the team borrow all idle quota.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// BorrowLimits are absolute and override the percentage. They can name pools
	// in which the team has no quota.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, has(a.instanceType) == has(b.instanceType) && (has(a.instanceType) ? a.instanceType == b.instanceType : has(b.pool) && a.pool == b.pool)))",message="the same instance type or pool is in two borrow limits; combine them"
	BorrowLimits []QuotaRow `json:"borrowLimits,omitempty"`
}

// Preemption sets which tasks the tasks of the team can preempt.
// +kubebuilder:validation:XValidation:rule="!has(self.reclaimWithinCohort) || self.reclaimWithinCohort != 'Never' || has(self.borrowWithinCohort) && self.borrowWithinCohort == 'Never'",message="preemption while borrowing needs reclaiming: set borrowWithinCohort to Never too"
type Preemption struct {
	// +optional
	// +kubebuilder:default=LowerPriority
	WithinTeam WithinTeam `json:"withinTeam,omitempty"`

	// ReclaimWithinCohort sets which tasks of other teams that borrow the team's
	// quota are preempted when the team needs it: Any, the default, LowerPriority or
	// Never.
	// +optional
	// +kubebuilder:validation:Enum=Any;LowerPriority;Never
	ReclaimWithinCohort string `json:"reclaimWithinCohort,omitempty"`

	// BorrowWithinCohort sets which tasks of other teams are preempted so that the
	// team can borrow: LowerPriority, the default, or Never.
	// +optional
	// +kubebuilder:validation:Enum=LowerPriority;Never
	BorrowWithinCohort string `json:"borrowWithinCohort,omitempty"`
}

// ComputeAllocationStatus is the observed state of a team.
type ComputeAllocationStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	ClusterQueue string `json:"clusterQueue,omitempty"`
	// +optional
	LocalQueue string `json:"localQueue,omitempty"`

	// Quota is the quota with every default filled in, per pool.
	// +optional
	// +listType=map
	// +listMapKey=pool
	Quota []PoolQuota `json:"quota,omitempty"`

	// Shares are the shares with a ClusterQueue of their own.
	// +optional
	// +listType=map
	// +listMapKey=name
	Shares []ShareStatus `json:"shares,omitempty"`

	// The value of status.active. Deprecated: read status.active. The console writes and
	// reads this field for one version, because replicas of earlier versions write no other.
	// +optional
	Active *ActiveStatus `json:"inForce,omitempty"`
	// The window or the step of the budget that replaces parts of the spec now; omitted for
	// nothing.
	// +optional
	ActiveCopy *ActiveStatus `json:"active,omitempty"`

	// Budget is what the team has used of its budget; omitted without one, and until it
	// is counted.
	// +optional
	Budget *BudgetStatus `json:"budget,omitempty"`

	// LastCorrection is the last change of an object of this team that another
	// field manager made and Kuota reverted.
	// +optional
	LastCorrection *Correction `json:"lastCorrection,omitempty"`
}

// PoolQuota is a team's quota and limits in one pool.
type PoolQuota struct {
	// +required
	Pool string `json:"pool"`
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []ResourceQuota `json:"resources,omitempty"`
}

// ResourceQuota is a team's quota of one resource in one pool.
type ResourceQuota struct {
	// Name is the Kubernetes resource, such as nvidia.com/gpu.
	// +required
	Name string `json:"name"`
	// +required
	Nominal resource.Quantity `json:"nominal"`
	// BorrowLimit is how much the team can borrow; omitted means no limit.
	// +optional
	BorrowLimit *resource.Quantity `json:"borrowLimit,omitempty"`
}

// Correction is one change by another field manager that Kuota reverted.
type Correction struct {
	// Object is kind and name, such as "ClusterQueue hyperpod-ns-vision-clusterqueue".
	// +required
	Object string `json:"object"`
	// Manager is the field manager that made the change, such as kubectl-edit.
	// +optional
	Manager string `json:"manager,omitempty"`
	// +required
	Time metav1.Time `json:"time"`
}

// ComputeAllocationList is a list of ComputeAllocation.
// +kubebuilder:object:root=true
type ComputeAllocationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ComputeAllocation `json:"items"`
}
