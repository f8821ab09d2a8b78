package reconcile

import "sync"

// RankingGate lets the ranking change only while no allocation is being applied
// as it was ranked before. A queue that is written late would preempt again in
// the middle of the change.
type RankingGate struct{ applying sync.RWMutex }

func (g *RankingGate) begin() { g.applying.RLock() }
func (g *RankingGate) end()   { g.applying.RUnlock() }

// wait returns once nothing is being applied that was read before it was called.
func (g *RankingGate) wait() {
	g.applying.Lock()
	defer g.applying.Unlock()
}
