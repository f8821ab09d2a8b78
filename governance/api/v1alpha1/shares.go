package v1alpha1

// Share is a queue of a team beside its own: a part of the usage of the team's quota, or, with
// quota, a ClusterQueue of its own.
// +kubebuilder:validation:XValidation:rule="has(self.quota) || !has(self.queueingStrategy)",message="a queue order needs a quota of the share: set one, or remove queueingStrategy",fieldPath=".queueingStrategy"
// +kubebuilder:validation:XValidation:rule="has(self.quota) || !has(self.borrowLimitPercent)",message="a borrow limit needs a quota of the share: set one, or remove the limit",fieldPath=".borrowLimitPercent"
type Share struct {
	// Name is part of the name of the LocalQueue of the share.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a share has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	Name string `json:"name"`

	// Weight is the usage of the share relative to that of the other shares. Of a share with
	// quota it is the fair-share weight, relative to that of teams.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Weight int32 `json:"weight"`

	// Members are the people and groups of the team who may use the queue of the
	// share. Without them, the whole team may.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Members []Member `json:"members,omitempty"`

	// DefaultPriorityClass is the priority class of the tasks of the share that name none, as that
	// of the team's queue.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a class name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	DefaultPriorityClass string `json:"defaultPriorityClass,omitempty"`

	// Kinds are the kinds of tasks that join the queue of the share if they name none, such as
	// RayJob or Deployment. The first share that names a kind has it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kinds []string `json:"kinds,omitempty"`

	// Quota is in addition to that of the team. The share then has a ClusterQueue of its own
	// beside that of the team, with the sharing, preemption and activation of the team.
	// Windows do not replace it. vCPU and memory are filled in proportion.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	Quota []WindowQuota `json:"quota,omitempty"`

	// BorrowLimitPercent is how much the share may borrow, in percent of its quota, while
	// the team borrows; 0 makes the quota a limit. The default is the limit of the team in
	// percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	BorrowLimitPercent *int32 `json:"borrowLimitPercent,omitempty"`

	// QueueingStrategy is BestEffortFIFO, the default, or StrictFIFO.
	// +optional
	// +kubebuilder:validation:Enum=BestEffortFIFO;StrictFIFO
	QueueingStrategy string `json:"queueingStrategy,omitempty"`
}

// ShareStatus is a share with quota as it was applied last.
type ShareStatus struct {
	// +required
	Name string `json:"name"`
	// +required
	ClusterQueue string `json:"clusterQueue"`
	// Quota is the quota of the share with every default filled in, per pool.
	// +optional
	// +listType=map
	// +listMapKey=pool
	Quota []PoolQuota `json:"quota,omitempty"`
}
