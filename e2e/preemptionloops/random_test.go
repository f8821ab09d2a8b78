package preemptionloops_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"
)

// randomSetting returns the setting of a seed: two or three teams that lend and
// borrow, and 4 to 10 tasks. Odd seeds are tight, even ones are not.
func randomSetting(seed uint64) setting {
	random := rand.New(rand.NewPCG(seed, 19))
	if seed%2 == 1 {
		return tightSetting(fmt.Sprintf("seed-%d", seed), random)
	}
	return looseSetting(fmt.Sprintf("seed-%d", seed), random)
}

// looseSetting returns teams and tasks that have nothing to do with each other.
// Kueue rarely loops in it.
func looseSetting(name string, random *rand.Rand) setting {
	s := setting{name: name, unallocated: oneOf(random, resources.Amount(0), 0, 0, 0, 2, 4, 8)}
	for i := range 2 + random.IntN(2) {
		s.teams = append(s.teams, team{
			name:    string(rune('a' + i)),
			quota:   oneOf(random, resources.Amount(4), 8, 8, 12, 16),
			weight:  int32(10 * (1 + random.IntN(5))),
			percent: oneOf(random, int32(25), 50, 50, 100, -1),
			within:  oneOf(random, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptNever),
		})
	}
	for range 4 + random.IntN(7) {
		s.add(random, random.IntN(len(s.teams)), oneOf(random, int64(1), 2, 2, 3, 4, 4, 5), level(random.IntN(3)))
	}
	return s
}

// tightSetting returns teams whose tasks fill the pool, as Kueue needs it to
// loop: a team requests more than is free, could preempt a lower class of its
// own and would then use no more than its quota. Kueue preempts a task of
// another team instead, and admits it again first, since its team's share
// stays the smaller.
func tightSetting(name string, random *rand.Rand) setting {
	s := setting{name: name}
	quota := oneOf(random, resources.Amount(4), 8, 8, 12, 16)
	for i := range 2 + random.IntN(2) {
		s.teams = append(s.teams, team{
			name: string(rune('a' + i)), quota: quota,
			weight:  int32(10 * (1 + random.IntN(5))),
			percent: oneOf(random, int32(50), 50, 100, -1),
			within:  v1alpha1.PreemptLowerPriority,
		})
	}
	first, last := &s.teams[0], &s.teams[len(s.teams)-1]
	if first.weight < last.weight {
		first.weight, last.weight = last.weight, first.weight
	}
	if random.IntN(4) > 0 && first.weight == last.weight {
		first.weight += 10
	}
	// In quarters of a quota, the first team has 2 and then 4 more, the last
	// one has 2, and requests 4 more.
	lower := level(random.IntN(2))
	s.add(random, 0, 2, oneOf(random, mid, high))
	s.add(random, len(s.teams)-1, 2, lower)
	if len(s.teams) == 3 {
		s.add(random, 1, 4, oneOf(random, mid, high))
	}
	s.add(random, 0, 4, level(random.IntN(3)))
	s.add(random, len(s.teams)-1, oneOf(random, int64(3), 4, 4, 4, 4), lower+1)
	for range random.IntN(5) {
		s.add(random, random.IntN(len(s.teams)), oneOf(random, int64(1), 2, 4), level(random.IntN(3)))
	}
	return s
}

// add appends a task of so many quarters of its team's quota. One in ten ends
// by itself.
func (s *setting) add(random *rand.Rand, team int, quarters int64, l level) {
	k := task{
		name: fmt.Sprintf("t%d", len(s.tasks)), team: team, level: l,
		gpus:  max(1, int64(s.teams[team].quota)*quarters/4),
		after: time.Duration(random.IntN(2000)) * time.Millisecond,
	}
	if random.IntN(10) == 0 {
		k.runs = time.Duration(5+random.IntN(30)) * time.Second
	}
	s.tasks = append(s.tasks, k)
}

func oneOf[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }
