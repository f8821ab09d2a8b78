package reconcile

import "sync"

// RankingGate delays a change of the ranking until no allocation is being
// applied with the old one. A ClusterQueue that is written late would preempt
// in the middle of the change.
type RankingGate struct{ applying sync.RWMutex }

func (g *RankingGate) begin() { g.applying.RLock() }
func (g *RankingGate) end()   { g.applying.RUnlock() }

// wait returns once every reconciliation that began before the call ended.
func (g *RankingGate) wait() {
	g.applying.Lock()
	defer g.applying.Unlock()
}
