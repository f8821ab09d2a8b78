package elastic_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	seeds    = flag.Int("sequences", 0, "how many random sequences TestSequences runs, a quarter under each policy and while it changes; 0 for four under one")
	fromSeed = flag.Uint64("from", 1, "the first seed of TestSequences")
	atOnce   = flag.Int("at-once", 4, "how many sequences run at the same time")
	chaos    = flag.Bool("chaos", true, "restart the controller, and run a second one, during TestSequences")
)

// TestSequences runs random sequences of events, under each policy and while the policy
// changes, while the controller is restarted and a second one runs, and checks the
// invariants of the oracle.
func TestSequences(t *testing.T) {
	clustertest.OnlyVerify(t)
	type part struct {
		name string
		by   []namedPolicy // in turn, of which the first applies from the start
	}
	parts := []part{{"Changes", policies}}
	for i := range policies {
		parts = append(parts, part{policies[i].name, policies[i : i+1]})
	}
	n := *seeds / len(parts)
	if *seeds == 0 {
		n, parts = 4, parts[2:3]
	}
	w := newWatch(t)
	for i, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			p.by[0].apply(t)
			stop := disturb(t)
			defer stop()
			var mu sync.Mutex
			failed, worst, increments := map[uint64][]string{}, map[string]time.Duration{}, 0
			asked, provisioned := 0, 0 // of increments: that asked for nodes, and that got them
			next := make(chan uint64)
			var group sync.WaitGroup
			for range *atOnce {
				group.Go(func() {
					for seed := range next {
						t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
							o := sequence(t, w, seed)
							mu.Lock()
							defer mu.Unlock()
							increments += len(o.growth)
							asked, provisioned = asked+len(o.asked), provisioned+o.provisioned
							for kind, d := range o.worst {
								worst[kind] = max(worst[kind], d)
							}
							if len(o.failures) > 0 {
								failed[seed] = o.failures
							}
						})
					}
				})
			}
			for seed := range uint64(n) {
				next <- *fromSeed + seed + uint64(i)*1_000_000
				if change := int(seed) + 1; len(p.by) > 1 && change%*atOnce == 0 {
					w.policy.Lock()
					began := time.Now()
					p.by[change / *atOnce % len(p.by)].apply(t)
					w.policy.Unlock()
					t.Logf("the policy changed within %s", time.Since(began).Round(100*time.Millisecond))
				}
			}
			close(next)
			group.Wait()
			for seed, failures := range failed {
				t.Errorf("seed %d:\n  %s", seed, strings.Join(failures, "\n  "))
			}
			t.Logf("%d sequences with %d increments, of which %d asked for nodes and %d got them; %d failed; longest: %v", n, increments, asked, provisioned, len(failed), worst)
		})
	}
}

// disturb restarts the controller again and again, and runs a second one beside it, of
// which one leads. stop ends that and leaves one controller.
func disturb(t *testing.T) (stop func()) {
	if !*chaos {
		return func() {}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	c, done, ended := setup(t), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for round := 0; ; round++ {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Second):
			}
			second, err := startController(c, log)
			if err != nil {
				t.Errorf("start a second controller: %v", err)
				return
			}
			if round%2 == 0 { // both run for a while
				select {
				case <-done:
				case <-time.After(5 * time.Second):
				}
			}
			if err := running.end(); err != nil {
				t.Errorf("stop the controller: %v", err)
			}
			running = second
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// sequence runs the events of one seed in a lab of its own.
func sequence(t *testing.T, w *watch, seed uint64) *oracle {
	steady := func(do func()) { // while the policy does not change
		w.policy.RLock()
		defer w.policy.RUnlock()
		do()
	}
	r := rand.New(rand.NewPCG(seed, 0))
	nodes := 2 + r.IntN(2)
	there := nodes - r.IntN(2) // the teams have quota of all
	l := newLab(t, there)
	s := &sequencer{lab: l, r: r, nodes: nodes, lost: map[int]bool{nodes - 1: there < nodes}}
	first := int64(2 + r.IntN(8*nodes-3))
	steady(func() {
		for i, gpus := range []int64{first, int64(8*nodes) - first} {
			within := v1alpha1.PreemptLowerPriority
			if r.IntN(3) == 0 {
				within = v1alpha1.PreemptNever
			}
			s.teams = append(s.teams, l.team([]string{"a", "b"}[i], gpus, func(spec *v1alpha1.ComputeAllocationSpec) { spec.Preemption.WithinTeam = within }))
		}
		s.elastic(s.teams[0], "train", s.class(), s.policy())
		if r.IntN(3) == 0 {
			s.elastic(s.teams[1], "other", s.class(), s.policy())
		}
	})
	o := newOracle(l, w, s.teams)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond):
				o.look()
			}
		}
	}()
	for range 8 {
		time.Sleep(time.Duration(500+r.IntN(4000)) * time.Millisecond)
		steady(s.event)
	}
	time.Sleep(6 * time.Second) // what lasts too long now is seen
	close(stop)
	<-ended
	if len(o.failures) > 0 {
		o.failures = append(s.log, o.failures...)
	}
	return o
}

// sequencer makes the events.
type sequencer struct {
	*lab
	r     *rand.Rand
	nodes int
	lost  map[int]bool
	teams []string
	jobs  []*batchv1.Job
	count int
	log   []string
}

func (s *sequencer) class() string {
	return []string{inferenceClass, trainingClass}[s.r.IntN(2)]
}

func (s *sequencer) policy() v1alpha1.ElasticPolicy {
	p := v1alpha1.ElasticPolicy{
		MinReplicas: int32(1 + s.r.IntN(3)), GracefulShutdownTimeoutInSeconds: int32(s.r.IntN(2)), ScalingTimeoutInSeconds: int32(s.r.IntN(2)),
		FaultyScaleDownTimeoutInSeconds: 2, MinStablePeriodSeconds: int32(1 + s.r.IntN(3)), BackoffMaxSeconds: 8,
	}
	s.sizes(&p)
	if s.r.IntN(2) == 0 {
		p.Growth, p.ProvisionTimeoutInSeconds = v1alpha1.GrowthProvision, int32(2+s.r.IntN(4))
	}
	return p
}

// sizes draws the sizes above the minimum.
func (s *sequencer) sizes(p *v1alpha1.ElasticPolicy) {
	p.ReplicaIncrementStep, p.ReplicaDiscreteValues = nil, nil
	if s.r.IntN(2) == 0 {
		step := int32(1 + s.r.IntN(3))
		p.ReplicaIncrementStep, p.MaxReplicas = &step, p.MinReplicas+step*int32(1+s.r.IntN(5))
		return
	}
	p.ReplicaDiscreteValues = []int32{p.MinReplicas}
	for size := p.MinReplicas; len(p.ReplicaDiscreteValues) < 4; {
		size += int32(1 + s.r.IntN(5))
		p.ReplicaDiscreteValues = append(p.ReplicaDiscreteValues, size)
	}
	p.MaxReplicas = slices.Max(p.ReplicaDiscreteValues)
}

func (s *sequencer) note(format string, args ...any) {
	s.log = append(s.log, time.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// event makes one random event.
func (s *sequencer) event() {
	s.Helper()
	if s.r.IntN(2) == 0 {
		s.provision()
	}
	switch k := s.r.IntN(20); {
	case k < 9:
		s.count++
		team, class, n := s.teams[s.r.IntN(2)], s.class(), int32(1+s.r.IntN(6))
		s.note("%s submits task-%d of %d, %s", team, s.count, n, class)
		s.jobs = append(s.jobs, s.submit(team, fmt.Sprintf("task-%d", s.count), class, n))
	case k < 13 && len(s.jobs) > 0:
		i := s.r.IntN(len(s.jobs))
		s.note("%s/%s ends", s.jobs[i].Namespace, s.jobs[i].Name)
		s.remove(s.jobs[i])
		s.jobs = slices.Delete(s.jobs, i, i+1)
	case k < 14:
		s.switchNode()
	case k < 15:
		if e := s.job(); e != nil {
			increment := fmt.Sprint(1 + s.r.IntN(3))
			s.note("pods of increment %s of %s fail", increment, e.Name)
			s.fail(e, increment)
		}
	case k < 17:
		if e := s.job(); e != nil {
			p := s.policy()
			if s.r.IntN(2) == 0 { // the minimum stays
				p.MinReplicas = e.Spec.ElasticPolicy.MinReplicas
				s.sizes(&p)
			}
			s.note("%s is resized to %d..%d, step %v, sizes %v", e.Name, p.MinReplicas, p.MaxReplicas, p.ReplicaIncrementStep, p.ReplicaDiscreteValues)
			s.resize(e, map[string]any{"minReplicas": p.MinReplicas, "maxReplicas": p.MaxReplicas, "replicaIncrementStep": p.ReplicaIncrementStep, "replicaDiscreteValues": p.ReplicaDiscreteValues})
		}
	case k < 18:
		s.limitBorrowing()
	case k < 19:
		if e := s.job(); e != nil {
			suspend := !e.Spec.Suspend
			s.note("suspend of %s: %v", e.Name, suspend)
			s.suspend(e, suspend)
		}
	default:
		if e := s.job(); e != nil {
			class := s.class()
			s.note("%s gets %s", e.Name, class)
			if err := s.Client.Patch(s.Context(), e, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":%q}}}`, class))); err != nil {
				s.Error(err)
			}
		}
	}
}

// job returns an ElasticJob of the lab; nil for none.
func (s *sequencer) job() *v1alpha1.ElasticJob {
	var list v1alpha1.ElasticJobList
	if err := s.Client.List(s.Context(), &list, client.InNamespace(namespace(s.teams[s.r.IntN(2)]))); err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// switchNode deletes a node, or creates it again.
func (s *sequencer) switchNode() {
	i := s.r.IntN(s.nodes)
	name := fmt.Sprintf("%s-%d", s.pool, i)
	if s.lost[i] {
		s.note("node %d is back", i)
		s.node(i)
	} else {
		s.note("node %d is lost", i)
		_ = s.Client.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	s.lost[i] = !s.lost[i]
}

// provision does what a cluster autoscaler does: it creates a lost node again if pods ask for
// nodes.
func (s *sequencer) provision() {
	var pods corev1.PodList
	for _, team := range s.teams {
		if err := s.Client.List(s.Context(), &pods, client.InNamespace(namespace(team))); err != nil {
			return
		}
		if slices.ContainsFunc(pods.Items, asksForNode) {
			for i, lost := range s.lost {
				if lost {
					s.note("node %d comes for growth", i)
					s.node(i)
					s.lost[i] = false
					return
				}
			}
		}
	}
}

// asksForNode reports whether a pod of growth waits for a node.
func asksForNode(p corev1.Pod) bool {
	return p.Spec.PriorityClassName == v1alpha1.ProvisionClass && p.Spec.NodeName == "" && p.DeletionTimestamp == nil
}

// limitBorrowing changes how much a team may borrow.
func (s *sequencer) limitBorrowing() {
	var a v1alpha1.ComputeAllocation
	if err := s.Client.Get(s.Context(), client.ObjectKey{Name: s.teams[s.r.IntN(2)]}, &a); err != nil {
		return
	}
	percent := int32(s.r.IntN(200))
	a.Spec.Sharing = v1alpha1.Sharing{BorrowLimitPercent: &percent}
	if s.r.IntN(2) == 0 {
		a.Spec.Sharing = v1alpha1.Sharing{Unlimited: true}
	}
	s.note("%s may borrow %+v", a.Name, a.Spec.Sharing)
	clustertest.Eventually(s, clustertest.Patience, func(ctx context.Context) error {
		var now v1alpha1.ComputeAllocation
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(&a), &now); err != nil {
			return err
		}
		now.Spec.Sharing = a.Spec.Sharing
		return s.Client.Update(ctx, &now)
	})
}
