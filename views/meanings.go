package views

// Meaning defines a figure. docs/dashboard.md has the same definitions.
type Meaning struct{ Name, Text string }

// meanings are the definitions by key.
var meanings = map[string]Meaning{
	"physical":    {"Physical", "What a pool's instances provide by their type, ready or not."},
	"own":         {"Own", "Used on instances by admitted tasks, within the quota of their teams."},
	"borrowed":    {"Borrowed", "Used beyond a team's own quota. In a pool's row: the part of it that is on instances."},
	"outside":     {"Outside Kueue", "Used on instances by pods that Kueue does not manage."},
	"unhealthy":   {"Unhealthy", "Unused on instances that accept no tasks or do not report the device."},
	"own-held":    {"Own, of a team", "What a team uses of its own quota, placed or not. The rest of its usage is borrowed."},
	"idle-quota":  {"Idle, of a team", "Quota that a team neither uses nor lends."},
	"idle":        {"Idle", "The rest. Own, borrowed, outside Kueue, unhealthy and idle add up to physical."},
	"quota":       {"Quota", "The sum of all teams' quotas. Above physical it is over capacity: not all teams can use theirs at once."},
	"unplaced":    {"Not placed", "Used by admitted tasks, and not on an instance yet. With own and borrowed on instances it adds up to what is used."},
	"largest":     {"Largest block", "The largest amount that is free on one instance."},
	"allocated":   {"Allocated", "A team's quota."},
	"reserve":     {"Reserve", "Quota of a department that neither its teams nor the departments below it have. All of them can borrow it."},
	"held":        {"Used", "The usage of a team's admitted tasks: its own quota and borrowed, placed or not."},
	"growth":      {"Growth", "Used by pods of elastic tasks beyond their minimum: idle compute, own or borrowed. Kueue preempts it first."},
	"lent":        {"Lent", "What other teams borrow of a team's idle quota. Borrowing from several lenders is apportioned among them."},
	"utilization": {"Utilization", "Used ÷ allocated. Above 100 % a team borrows; – is a team without quota."},
	"running":     {"Running", "A team's admitted tasks, in all pools."},
	"waiting":     {"Waiting", "A team's tasks that wait for admission."},
	"recovery":    {"Pending recovery", "Instances that are not ready, or whose accelerators are being partitioned."},
	"instances":   {"Running instances", "Instances that are ready and accept tasks. Cordoned instances are neither running nor pending recovery."},
	"memory":      {"Accelerator memory", "Memory per accelerator, as its vendor states it or NVIDIA's node label nvidia.com/gpu.memory, times the number of accelerators where it is known."},
}

func meaningsOf(keys []string) []Meaning {
	var list []Meaning
	for _, key := range keys {
		list = append(list, meanings[key])
	}
	return list
}
