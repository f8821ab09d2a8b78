package views

// Meaning is what a figure says, in one sentence. docs/dashboard.md has the same.
type Meaning struct{ Name, Text string }

// meanings are the figures of the cluster, its pools and its teams.
var meanings = map[string]Meaning{
	"physical":    {"Physical", "What the instances of a pool have by their type, ready or not."},
	"own":         {"Own", "What is bound to instances by admitted tasks, up to the quota of their teams."},
	"borrowed":    {"Borrowed", "What is held beyond the own quota; in the line of a pool, the part of it that is bound to instances."},
	"outside":     {"Outside Kueue", "What is bound to instances by pods that Kueue does not manage."},
	"unhealthy":   {"Unhealthy", "What nobody uses, on instances that take no tasks or do not report the device."},
	"own-held":    {"Own, of a team", "What a team holds up to its quota, placed or not; what it borrows is the rest."},
	"idle-quota":  {"Idle, of a team", "What a team neither holds nor lends of its quota."},
	"idle":        {"Idle", "What is left of the physical: own, borrowed, outside Kueue, unhealthy and idle add up to it."},
	"quota":       {"Quota", "What teams were given, in sum; more than is physical is oversubscribed."},
	"unplaced":    {"Not placed", "What admitted tasks hold that is bound to no instance yet."},
	"largest":     {"Largest block", "The most that is free on one instance."},
	"allocated":   {"Allocated", "The quota that a team was given."},
	"held":        {"Held", "What a team's admitted tasks hold, of its own quota and borrowed, whether placed or not."},
	"lent":        {"Lent", "What others borrow of a team's idle quota; what is borrowed of several lenders is apportioned, and adds up."},
	"utilization": {"Utilization", "Held ÷ allocated; above 100 % a team borrows, and – is a team without quota."},
	"running":     {"Running", "A team's tasks that hold quota, in all pools."},
	"waiting":     {"Waiting", "A team's tasks that wait for quota."},
	"recovery":    {"Pending recovery", "Instances that are not ready, or whose accelerators are being set up."},
	"instances":   {"Running instances", "Instances that are ready and take tasks; cordoned ones are neither running nor pending recovery."},
	"memory":      {"Accelerator memory", "Memory of one accelerator as its vendor counts, times how many there are, where it is known."},
}

func meaningsOf(keys []string) []Meaning {
	var list []Meaning
	for _, key := range keys {
		list = append(list, meanings[key])
	}
	return list
}
