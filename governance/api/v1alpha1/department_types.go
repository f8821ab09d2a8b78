package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxDepartmentLevels is how many departments can be above one another: a department, its
// parent and the parent of that.
const MaxDepartmentLevels = 3

// DepartmentRole is what a member of a department may do.
// +kubebuilder:validation:Enum=Admin;Viewer
type DepartmentRole string

// The roles.
const (
	// DepartmentAdmin creates, changes and deletes the allocations and the departments
	// below the department, and sees what a viewer sees.
	DepartmentAdmin DepartmentRole = "Admin"
	// DepartmentViewer sees the tasks, the usage and the cost of all teams below it.
	DepartmentViewer DepartmentRole = "Viewer"
)

// ConditionDelegation is the condition of a Department that reports whether its admins can
// change its teams: while the API server applies the admission policy that limits them.
const ConditionDelegation = "Delegation"

// Reasons of Ready=False of a Department.
const (
	// ReasonParentInvalid is the reason while the parent does not exist, or would be a
	// cycle or too many levels. The parent that was applied last stays.
	ReasonParentInvalid = "ParentInvalid"
	// ReasonOverParent is the reason while the quota is more than its parent has left. The
	// quota that was applied last stays.
	ReasonOverParent = "OverParentQuota"
	// ReasonBelowTeams is the reason while the quota is less than what its teams and
	// departments have. The quota that was applied last stays.
	ReasonBelowTeams = "BelowTeamQuota"
)

// Department divides compute between the teams and the departments below it. It becomes a
// Cohort below the one that all teams share, whose own quota is the department's reserve:
// its quota less that of its teams and departments. What is idle below a department is
// lent below it first.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a department name has at most 40 lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'new'",message="the department name new is reserved"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.parent) || self.spec.parent != self.metadata.name",message="a department cannot be its own parent"
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.spec.fairShareWeight`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Department struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec DepartmentSpec `json:"spec"`
	// +optional
	Status DepartmentStatus `json:"status,omitzero"`
}

// DepartmentSpec is the desired state of a department.
// +kubebuilder:validation:XValidation:rule="has(self.cohortName) == has(oldSelf.cohortName)",message="cohortName cannot be changed; create a new department instead"
type DepartmentSpec struct {
	// DisplayName is shown instead of the name. It is one line.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="a display name has no line breaks or other control characters"
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x{80}-\x{9F}\x{61C}\x{200E}\x{200F}\x{2028}-\x{202E}\x{2066}-\x{2069}\x{FEFF}]')`,message="a display name has no line breaks, and no characters that change the direction of writing"
	DisplayName string `json:"displayName,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// Parent is the department that this one is below. Without it, the department is below
	// the cohort that all teams share. There are at most three levels.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Parent string `json:"parent,omitempty"`

	// Members govern or see what is below the department.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Members []DepartmentMember `json:"members,omitempty"`

	// Activation is Active, Hold (admitted tasks of all teams below continue, none is
	// admitted) or Drain (admitted tasks are requeued).
	// +optional
	// +kubebuilder:default=Active
	Activation Activation `json:"activation,omitempty"`

	// FairShareWeight is from 0, the default, to 100: the share of the department beside
	// its siblings. It has an effect while the cluster policy shares idle compute by fair
	// share.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FairShareWeight int32 `json:"fairShareWeight,omitempty"`

	// Quota is what all teams and departments below may have together. What they do not
	// have is the reserve of the department, which all of them can borrow.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, has(a.instanceType) == has(b.instanceType) && (has(a.instanceType) ? a.instanceType == b.instanceType : has(b.pool) && a.pool == b.pool)))",message="the same instance type or pool is in two rows; combine them"
	Quota []QuotaRow `json:"quota,omitempty"`

	// Sharing sets what the department lends to others and borrows from them, across its
	// border. Limits in percent are of its quota.
	// +optional
	// +kubebuilder:default={}
	Sharing Sharing `json:"sharing,omitzero"`

	// Windows replace quota, sharing or activation between two times, once or each
	// week. They do not overlap.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Windows []Window `json:"windows,omitempty"`

	// Budget limits what all teams below use in each week, month or quarter.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// CohortName is a Cohort that existed before the department. Kuota takes it over if
	// the department describes it. The default is a Cohort of Kuota's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the cohort cannot be changed; create a new department instead"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="a cohort name has lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit"
	CohortName string `json:"cohortName,omitempty"`
}

// DepartmentMember is a person or a group with a role in a department.
type DepartmentMember struct {
	Member `json:",inline"`

	// Role is Viewer, the default, or Admin.
	// +optional
	// +kubebuilder:default=Viewer
	Role DepartmentRole `json:"role,omitempty"`
}

// DepartmentStatus is the observed state of a department.
type DepartmentStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Namespace is where the roles of the members are bound. No task runs there.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Cohort is the Cohort of the department.
	// +optional
	Cohort string `json:"cohort,omitempty"`
	// Parent is the department below which the Cohort is.
	// +optional
	Parent string `json:"parent,omitempty"`

	// Quota is the quota that is applied, with every default filled in, per pool.
	// +optional
	// +listType=map
	// +listMapKey=pool
	Quota []PoolQuota `json:"quota,omitempty"`

	// Active is the window or the step of the budget that replaces parts of the spec now;
	// omitted for nothing.
	// +optional
	Active *ActiveStatus `json:"active,omitempty"`

	// Budget is what the teams below used of the budget; omitted without one, and until it
	// is counted.
	// +optional
	Budget *BudgetStatus `json:"budget,omitempty"`

	// Counted are the teams whose usage the budget counts: those below, and those that were
	// below when they were deleted in this period.
	// +optional
	// +listType=set
	Counted []string `json:"counted,omitempty"`

	// LastCorrection is the last change of an object of this department that another
	// field manager made and Kuota reverted.
	// +optional
	LastCorrection *Correction `json:"lastCorrection,omitempty"`
}

// DepartmentList is a list of Department.
// +kubebuilder:object:root=true
type DepartmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Department `json:"items"`
}

// Allocation returns what a department has in common with an allocation, so that the same
// functions compute its quota, limits, windows and budget. It shares memory with d.
func (d *Department) Allocation() *ComputeAllocation {
	return &ComputeAllocation{
		ObjectMeta: d.ObjectMeta,
		Spec: ComputeAllocationSpec{
			DisplayName: d.Spec.DisplayName, Description: d.Spec.Description, Activation: d.Spec.Activation, FairShareWeight: d.Spec.FairShareWeight,
			Quota: d.Spec.Quota, Sharing: d.Spec.Sharing, Windows: d.Spec.Windows, Budget: d.Spec.Budget,
		},
		Status: ComputeAllocationStatus{Conditions: d.Status.Conditions, ObservedGeneration: d.Status.ObservedGeneration, Quota: d.Status.Quota, Active: d.Status.Active, Budget: d.Status.Budget},
	}
}
