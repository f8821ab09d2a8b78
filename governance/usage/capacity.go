package usage

// Pool is one resource of one pool at one moment, in the units of
// quota.Resources. OwnBound, BorrowedBound, Outside, Unhealthy and Idle add up to
// Physical.
type Pool struct {
	Physical      int64 // nominal figures of all its nodes, ready or not
	OwnBound      int64 // bound to nodes by admitted tasks, up to their teams' quota
	BorrowedBound int64 // bound to nodes by admitted tasks beyond it
	Outside       int64 // bound to nodes by pods that Kueue does not manage
	Unhealthy     int64 // neither, on nodes that take no tasks or lack the device
	Idle          int64 // the rest
	Recovering    int64 // physical, of nodes that are not ready
	Cordoned      int64 // physical, of cordoned nodes
	Quota         int64 // given to teams
	Held          int64 // by admitted tasks, whether bound or not
	Unplaced      int64 // held, and bound to no node
	Borrowed      int64 // held beyond quota
	Lent          int64 // of Borrowed by teams, apportioned
	Unallocated   int64 // of Borrowed from what no team was given
	Shares        int64 // what no team was given and may be borrowed
	Largest       int64 // free on one node
}

// Over is by how much more was given than there is.
func (p Pool) Over() int64 { return max(0, p.Quota-p.Physical) }

// Share is what a team has of one resource of one pool.
type Share struct {
	Quota         int64
	Held          int64 // by admitted tasks: Own and Borrowed
	Own           int64 // up to its quota
	Borrowed      int64
	Lent          int64 // of its idle quota, to other teams; apportioned
	OwnBound      int64 // bound to nodes, up to its quota
	BorrowedBound int64
	Unplaced      int64 // held, and bound to no node
}

// Idle is what it neither holds nor lends of its quota.
func (s Share) Idle() int64 { return max(0, s.Quota-s.Own-s.Lent) }

// Add adds another share to it.
func (s *Share) Add(o Share) {
	s.Quota += o.Quota
	s.Held += o.Held
	s.Own += o.Own
	s.Borrowed += o.Borrowed
	s.Lent += o.Lent
	s.OwnBound += o.OwnBound
	s.BorrowedBound += o.BorrowedBound
	s.Unplaced += o.Unplaced
}
