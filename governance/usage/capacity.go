package usage

// Pool is one resource of one pool at one moment, in the units of
// quota.Resources. OwnBound, BorrowedBound, Outside, Unhealthy and Idle add up to
// Physical.
type PoolUsage struct {
	Physical            int64 // nominal figures of all its nodes, ready or not
	OwnBound            int64 // bound to nodes by admitted tasks, up to their teams' quota
	BorrowedBound       int64 // bound to nodes by admitted tasks beyond it
	Outside             int64 // bound to nodes by pods that Kueue does not manage
	Unhealthy           int64 // neither, on nodes that take no tasks or lack the device
	Idle                int64 // the rest
	Recovering          int64 // physical, of nodes that are not ready
	Cordoned            int64 // physical, of cordoned nodes
	Nominal             int64 // given to teams
	Usage               int64 // by admitted tasks, whether bound or not
	Unbound             int64 // held, and bound to no node
	Borrowed            int64 // held beyond quota
	LentToCohort        int64 // of Borrowed by teams, apportioned
	BorrowedUnallocated int64 // of Borrowed from what no team was given
	Unallocated         int64 // what no team was given and may be borrowed
	LargestFree         int64 // free on one node
}

// Over is by how much more was given than there is.
func (p PoolUsage) Overallocated() int64 { return max(0, p.Nominal-p.Physical) }

// Share is what a team has of one resource of one pool.
type TeamUsage struct {
	Nominal       int64
	Usage         int64 // by admitted tasks: Own and Borrowed
	Own           int64 // up to its quota
	Borrowed      int64
	LentToCohort  int64 // of its idle quota, to other teams; apportioned
	OwnBound      int64 // bound to nodes, up to its quota
	BorrowedBound int64
	Unbound       int64 // held, and bound to no node
}

// Idle is what it neither holds nor lends of its quota.
func (s TeamUsage) Idle() int64 { return max(0, s.Nominal-s.Own-s.LentToCohort) }

// Add adds another share to it.
func (s *TeamUsage) Add(o TeamUsage) {
	s.Nominal += o.Nominal
	s.Usage += o.Usage
	s.Own += o.Own
	s.Borrowed += o.Borrowed
	s.LentToCohort += o.LentToCohort
	s.OwnBound += o.OwnBound
	s.BorrowedBound += o.BorrowedBound
	s.Unbound += o.Unbound
}
