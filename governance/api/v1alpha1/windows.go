package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Weekday is a day of the week.
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string

// Weekdays are all days, in the order of time.Weekday.
var Weekdays = []Weekday{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

// Window replaces parts of the spec between two times, once or each week. The spec itself
// does not change.
// +kubebuilder:validation:XValidation:rule="has(self.days) ? self.from.size() == 5 && self.to.size() == 5 : self.from.size() == 16 && self.to.size() == 16 && self.from < self.to",message="a window with days is from one time of day such as 22:00 to another; one without is from a date and time such as 2026-12-01T08:00 to a later one"
// +kubebuilder:validation:XValidation:rule="has(self.quota) || has(self.sharing) || has(self.activation)",message="a window sets quota, sharing or activation"
type Window struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a window name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	Name string `json:"name"`

	// Days are those on which the window begins each week. Without them, it is once.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// From is when the window begins: a time of day such as 22:00 or, without days, a
	// date and time such as 2026-12-01T08:00. A time that the clock skips is the first
	// one after it, and one that it repeats the first of the two.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{4}-[0-9]{2}-[0-9]{2}T)?([01][0-9]|2[0-3]):[0-5][0-9]$')",message="a time looks like 22:00 or 2026-12-01T08:00"
	From string `json:"from"`

	// To is when the window ends. A time of day that is not later than from is on the
	// next day.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{4}-[0-9]{2}-[0-9]{2}T)?([01][0-9]|2[0-3]):[0-5][0-9]$')",message="a time looks like 22:00 or 2026-12-01T08:00"
	To string `json:"to"`

	// TimeZone is a name of the IANA time zone database. The default is UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// Notice is how long before its beginning the window is announced to the team.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h')",message="a notice is from 0s to 720h"
	Notice *metav1.Duration `json:"notice,omitempty"`

	// Quota replaces the quota of the spec. vCPU and memory are filled in proportion.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	Quota []WindowQuota `json:"quota,omitempty"`

	// Sharing replaces the sharing of the spec, borrow limits of single pools included.
	// +optional
	Sharing *WindowSharing `json:"sharing,omitempty"`

	// Activation replaces that of the spec. Drain requeues the tasks that are admitted
	// when the window begins.
	// +optional
	Activation Activation `json:"activation,omitempty"`
}

// WindowQuota is quota of one instance type or pool in a window, or of a share.
// +kubebuilder:validation:XValidation:rule="has(self.instanceType) != has(self.pool)",message="a row names either an instanceType or a pool"
// +kubebuilder:validation:XValidation:rule="[has(self.instances), has(self.accelerators), has(self.partition)].filter(set, set).size() == 1",message="set one of instances, accelerators and partition"
type WindowQuota struct {
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType,omitempty"`

	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool,omitempty"`

	// Instances is a number of whole instances.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	Instances *int64 `json:"instances,omitempty"`

	// Accelerators is a number of GPUs or Neuron devices.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	Accelerators *int64 `json:"accelerators,omitempty"`

	// Partition is a number of MIG partitions of accelerators.
	// +optional
	Partition *Partition `json:"partition,omitempty"`
}

// Row returns the row as one of the spec.
func (q *WindowQuota) Row() QuotaRow {
	return QuotaRow{InstanceType: q.InstanceType, Pool: q.Pool, Quantities: Quantities{Instances: q.Instances, Accelerators: q.Accelerators, Partition: q.Partition}}
}

// rowsOf returns rows of quota.
func rowsOf(quota []WindowQuota) (rows []QuotaRow) {
	for i := range quota {
		rows = append(rows, quota[i].Row())
	}
	return rows
}

// QuotaRows returns the rows of quota that replace those of the spec; none for those of the spec.
func (w *Window) QuotaRows() []QuotaRow { return rowsOf(w.Quota) }

// WindowSharing is what a team lends and borrows in a window.
// +kubebuilder:validation:XValidation:rule="self.strategy == 'LendAndBorrow' || !has(self.borrowLimitPercent) && !(has(self.unlimited) && self.unlimited)",message="borrow limits need the strategy LendAndBorrow: set it, or remove the limits"
// +kubebuilder:validation:XValidation:rule="!(has(self.unlimited) && self.unlimited && has(self.borrowLimitPercent))",message="borrowing is either unlimited or limited by a percentage"
type WindowSharing struct {
	// +optional
	// +kubebuilder:default=LendAndBorrow
	Strategy SharingStrategy `json:"strategy,omitempty"`

	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	BorrowLimitPercent *int32 `json:"borrowLimitPercent,omitempty"`

	// +optional
	Unlimited bool `json:"unlimited,omitempty"`
}

// BudgetAction is what happens when a team has used a part of its budget.
// +kubebuilder:validation:Enum=Notify;BorrowNothing;Hold;Drain
type BudgetAction string

// The actions, each stricter than those before it.
const (
	BudgetNotify        BudgetAction = "Notify"        // an alert fires
	BudgetBorrowNothing BudgetAction = "BorrowNothing" // the team borrows nothing more; admitted tasks continue
	BudgetHold          BudgetAction = "Hold"          // no task is admitted; admitted tasks continue
	BudgetDrain         BudgetAction = "Drain"         // admitted tasks are requeued
)

// BudgetActions are all actions in their order.
var BudgetActions = []BudgetAction{BudgetNotify, BudgetBorrowNothing, BudgetHold, BudgetDrain}

// BudgetPeriod is the time after which a budget begins again.
// +kubebuilder:validation:Enum=Week;Month;Quarter
type BudgetPeriod string

// The periods. A week begins on Monday, a quarter in January, April, July or October.
const (
	BudgetWeek    BudgetPeriod = "Week"
	BudgetMonth   BudgetPeriod = "Month"
	BudgetQuarter BudgetPeriod = "Quarter"
)

// BudgetPeriods are all periods.
var BudgetPeriods = []BudgetPeriod{BudgetWeek, BudgetMonth, BudgetQuarter}

// Budget limits what a team uses in each period, by what history recorded.
// +kubebuilder:validation:XValidation:rule="has(self.acceleratorHours) != has(self.money)",message="a budget has either acceleratorHours or money"
type Budget struct {
	// AcceleratorHours are hours of whole accelerators, own and borrowed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000000
	AcceleratorHours *int64 `json:"acceleratorHours,omitempty"`

	// Money is an amount in the currency of the prices of the cluster policy. What has
	// no price costs nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,12}([.][0-9]{1,4})?$') && !self.matches('^[0.]*$')",message="money is a number above 0 such as 12500 or 99.50"
	Money string `json:"money,omitempty"`

	// +required
	Period BudgetPeriod `json:"period"`

	// TimeZone is that in which periods begin. The default is UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// Steps are what happens at parts of the budget.
	// +required
	// +listType=map
	// +listMapKey=action
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Steps []BudgetStep `json:"steps"`
}

// BudgetStep is one action of a budget.
type BudgetStep struct {
	// Percent of the budget that is used when the action begins.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Percent int32 `json:"percent"`

	// +required
	Action BudgetAction `json:"action"`
}

// ActiveStatus is what replaces parts of the spec now.
type ActiveStatus struct {
	// Window is the name of a window; empty while none is open.
	// +optional
	Window string `json:"window,omitempty"`
	// From and To bound the window.
	// +optional
	From *metav1.Time `json:"from,omitempty"`
	// +optional
	To *metav1.Time `json:"to,omitempty"`

	// BudgetAction is BorrowNothing, Hold or Drain while the budget of the team requires it.
	// +optional
	BudgetAction BudgetAction `json:"budgetAction,omitempty"`
	// BudgetUntil is the end of the period.
	// +optional
	BudgetUntil *metav1.Time `json:"budgetUntil,omitempty"`

	// Announced is a window that opens soon.
	// +optional
	Announced *AnnouncedWindow `json:"announced,omitempty"`
}

// OpenWindow returns the name of the window that is open; empty for none.
func (in *ActiveStatus) OpenWindow() string {
	if in == nil {
		return ""
	}
	return in.Window
}

// AnnouncedWindow is a window before its beginning.
type AnnouncedWindow struct {
	// +required
	Window string `json:"window"`
	// +required
	From metav1.Time `json:"from"`
	// +required
	To metav1.Time `json:"to"`
}

// BudgetStatus is what a team has used of its budget.
type BudgetStatus struct {
	// From and To bound the period.
	// +required
	From metav1.Time `json:"from"`
	// +required
	To metav1.Time `json:"to"`

	// Counted is the time until which usage is counted.
	// +required
	Counted metav1.Time `json:"counted"`

	// Used is what was used since From, in the unit of the budget, with two decimals.
	// +required
	Used string `json:"used"`
	// Percent is Used in percent of the budget, rounded down.
	// +required
	Percent int64 `json:"percent"`

	// Projected is Used at To if tasks use as much as in the last hour.
	// +optional
	Projected string `json:"projected,omitempty"`

	// Unknown is the part of the period that was not recorded. It is not counted.
	// +optional
	Unknown *metav1.Duration `json:"unknown,omitempty"`

	// Action is the strictest one that is reached.
	// +optional
	Action BudgetAction `json:"action,omitempty"`
}
