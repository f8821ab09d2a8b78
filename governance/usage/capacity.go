package usage

// PoolUsage is the usage of one resource of one pool, in the units of
// quota.Resources. OwnBound, BorrowedBound, Outside, Unhealthy and Idle add up
// to Physical.
type PoolUsage struct {
	Physical            int64 // nominal resources of all nodes, ready or not
	OwnBound            int64 // requests of bound pods of admitted tasks, up to the nominal quota of their teams
	BorrowedBound       int64 // the same, beyond it
	Outside             int64 // requests of bound pods that Kueue does not manage
	Unhealthy           int64 // unused, on unschedulable nodes or of missing devices
	Idle                int64 // the rest
	Recovering          int64 // Physical of nodes that are not ready
	Cordoned            int64 // Physical of cordoned nodes
	Nominal             int64 // nominal quota of all teams
	Usage               int64 // of admitted tasks, bound or not
	Unbound             int64 // usage of tasks without bound pods
	Borrowed            int64 // usage beyond nominal quota
	Growth              int64 // the part of Usage that is growth of elastic tasks, own or borrowed
	OwnGrowth           int64 // the part of Growth that is not borrowed
	LentToCohort        int64 // the part of Borrowed that teams lend, apportioned
	BorrowedUnallocated int64 // the part of Borrowed from Unallocated
	Unallocated         int64 // not allocated to a team; can be borrowed
	LargestFree         int64 // largest free amount of one node
}

// Overallocated returns by how much the nominal quota exceeds the physical
// resources.
func (p PoolUsage) Overallocated() int64 { return max(0, p.Nominal-p.Physical) }

// TeamUsage is the usage of one resource of one pool by one team.
type TeamUsage struct {
	Nominal       int64
	Usage         int64 // of admitted tasks: Own and Borrowed
	Own           int64 // usage up to Nominal
	Borrowed      int64
	Growth        int64 // the part of Usage that is growth of elastic tasks, own or borrowed
	LentToCohort  int64 // idle quota that other teams borrow, apportioned
	OwnBound      int64 // requests of bound pods, up to Nominal
	BorrowedBound int64
	Unbound       int64 // usage of tasks without bound pods
}

// Idle returns the nominal quota that the team neither uses nor lends.
func (s TeamUsage) Idle() int64 { return max(0, s.Nominal-s.Own-s.LentToCohort) }

// OwnGrowth returns the part of Growth that is not borrowed: growth borrows before the
// rest of the usage does.
func (s TeamUsage) OwnGrowth() int64 { return max(0, s.Growth-s.Borrowed) }

// Add adds another usage.
func (s *TeamUsage) Add(o TeamUsage) {
	s.Nominal += o.Nominal
	s.Usage += o.Usage
	s.Own += o.Own
	s.Borrowed += o.Borrowed
	s.Growth += o.Growth
	s.LentToCohort += o.LentToCohort
	s.OwnBound += o.OwnBound
	s.BorrowedBound += o.BorrowedBound
	s.Unbound += o.Unbound
}
