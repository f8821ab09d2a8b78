// Package live asks package simulate about the cluster as it is: it takes snapshots
// from the caches, and passes questions to a worker.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/worker"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// shareSnapshot is how long a snapshot is used for further questions, which then
// share what is computed about the cluster without a change.
const shareSnapshot = time.Second

// shareConfiguration is how long Kueue's configuration is used without reading it
// again: a restart of Kueue takes longer.
const shareConfiguration = 10 * time.Second

// Simulator asks about the cluster as it is. It is safe for concurrent use. A nil one
// is disabled.
type Simulator struct {
	Reader func() (client.Reader, error) // of the caches
	// Kueue reads Kueue's configuration.
	Kueue  func(context.Context) (kueueconfig.Current, error)
	Worker *worker.Worker
	Now    func() time.Time
	Log    *slog.Logger // nil for the default
	// MaxWorkloads is how many Workloads are simulated at most; 0 for no limit. Of larger
	// clusters, questions are about condensed snapshots.
	MaxWorkloads int
	// Changes counts what changed in the caches: a snapshot is not used for further
	// questions after a change. nil never changes.
	Changes func() uint64

	mu            sync.Mutex
	snapshot      *simulate.Snapshot // the last one
	changes       uint64             // before it was taken
	previous      map[any]any        // objects of the cache to those of the last snapshot
	configuration simulate.Configuration
	version       string
	configuredAt  time.Time
	limits        limits
	replays       replays

	condensing sync.Mutex
	condensed  *simulate.Snapshot // that condenser is of
	condenser  *simulate.Condenser
}

// The reasons why nothing is simulated.
var (
	ErrTooLarge = errors.New("the cluster has too many tasks to simulate")
	ErrDisabled = errors.New("simulations are disabled")
)

// Reason returns why something is not simulated, as a part of a sentence.
func Reason(err error) string {
	for _, known := range []error{ErrTooMany, ErrTooLarge, ErrDisabled} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case errors.Is(err, worker.ErrTimeout):
		return "the simulation took too long"
	case errors.Is(err, worker.ErrMemory):
		return "the simulation needed too much memory"
	}
	return "the simulation failed"
}

// Ask answers a question of a user about the cluster as it is, and returns the
// snapshot that it is about. Errors are ErrTooMany, those of worker.Ask and of
// Snapshot.
func (s *Simulator) Ask(ctx context.Context, user string, q *simulate.Question) (*simulate.Report, *simulate.Snapshot, error) {
	if s == nil {
		return nil, nil, ErrDisabled
	}
	if !s.allows(user) {
		return nil, nil, ErrTooMany
	}
	now, err := s.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	report, err := s.Answer(ctx, now, q)
	return report, now, err
}

// Answer answers a question about a snapshot, for no user: its callers share
// answers between users, or limit how often they ask.
func (s *Simulator) Answer(ctx context.Context, of *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	if s == nil {
		return nil, ErrDisabled
	}
	if !s.tooLarge(of) {
		return s.answer(ctx, of, q)
	}
	if len(q.Draws) > 0 {
		return nil, ErrTooLarge
	}
	condenser := s.condense(of)
	for _, factor := range []int{1, 4} { // until what stayed is enough
		part := condenser.For(q, factor)
		if s.tooLarge(part.Snapshot) {
			break
		}
		report, err := s.answer(ctx, part.Snapshot, q)
		if err != nil || part.Complete(report) {
			return report, err
		}
	}
	return nil, ErrTooLarge
}

func (s *Simulator) answer(ctx context.Context, of *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error) {
	began := time.Now()
	report, err := s.Worker.Ask(ctx, of, q)
	questions.WithLabelValues(result(ctx, err)).Observe(time.Since(began).Seconds())
	return report, err
}

func (s *Simulator) tooLarge(of *simulate.Snapshot) bool {
	return s.MaxWorkloads > 0 && len(of.Workloads) > s.MaxWorkloads
}

// condense returns what condenses a snapshot, and keeps it for further questions.
func (s *Simulator) condense(of *simulate.Snapshot) *simulate.Condenser {
	s.condensing.Lock()
	defer s.condensing.Unlock()
	if s.condensed != of {
		s.condensed, s.condenser = of, simulate.NewCondenser(of)
	}
	return s.condenser
}

// Snapshot returns what Kueue's scheduler reads, as of at most a second ago. Its
// objects are shared and read only.
func (s *Simulator) Snapshot(ctx context.Context) (*simulate.Snapshot, error) {
	if s == nil {
		return nil, ErrDisabled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	var changes uint64
	if s.Changes != nil {
		changes = s.Changes()
	}
	if s.snapshot != nil && changes == s.changes && now.Sub(s.snapshot.Time) < shareSnapshot {
		return s.snapshot, nil
	}
	reader, err := s.Reader()
	if err != nil {
		return nil, err
	}
	if err := s.readConfiguration(ctx, now); err != nil {
		return nil, err
	}
	taken, err := s.take(ctx, reader, now)
	if err != nil {
		return nil, err
	}
	s.snapshot, s.changes = taken, changes
	return taken, nil
}

// readConfiguration reads Kueue's configuration, unless it was read recently.
func (s *Simulator) readConfiguration(ctx context.Context, now time.Time) error {
	if now.Sub(s.configuredAt) < shareConfiguration {
		return nil
	}
	current, err := s.Kueue(ctx)
	if err != nil {
		return cluster.Translate("read Kueue's configuration", err)
	}
	if s.configuration, err = Configuration(current); err != nil {
		return err
	}
	s.version, _ = kueueconfig.Version(current.Image, 0)
	s.configuredAt = now
	return nil
}

// Configuration returns the part of Kueue's configuration that decides on admission
// and preemption.
func Configuration(current kueueconfig.Current) (simulate.Configuration, error) {
	var file struct {
		FairSharing *struct {
			Enable               *bool                       `json:"enable"` // before 0.17
			PreemptionStrategies []config.PreemptionStrategy `json:"preemptionStrategies"`
		} `json:"fairSharing"`
		WaitForPodsReady *struct {
			RequeuingStrategy *struct {
				Timestamp config.RequeuingTimestamp `json:"timestamp"`
			} `json:"requeuingStrategy"`
		} `json:"waitForPodsReady"`
		Resources *config.Resources `json:"resources"`
	}
	if err := yaml.Unmarshal([]byte(current.Text), &file); err != nil {
		return simulate.Configuration{}, fmt.Errorf("read Kueue's configuration: %w", err)
	}
	gates, err := kueueconfig.FeatureGates(current)
	if err != nil {
		return simulate.Configuration{}, fmt.Errorf("read Kueue's configuration: %w", err)
	}
	c := simulate.Configuration{Resources: file.Resources, FeatureGates: gates}
	if f := file.FairSharing; f != nil && (f.Enable == nil || *f.Enable) {
		c.FairSharing = &config.FairSharing{PreemptionStrategies: f.PreemptionStrategies}
	}
	if w := file.WaitForPodsReady; w != nil && w.RequeuingStrategy != nil {
		c.RequeuingTimestamp = w.RequeuingStrategy.Timestamp
	}
	return c, nil
}

// take reads all objects from the caches.
func (s *Simulator) take(ctx context.Context, reader client.Reader, now time.Time) (*simulate.Snapshot, error) {
	var (
		namespaces corev1.NamespaceList
		flavors    kueue.ResourceFlavorList
		cohorts    kueue.CohortList
		queues     kueue.ClusterQueueList
		locals     kueue.LocalQueueList
		limits     corev1.LimitRangeList
		workloads  kueue.WorkloadList
	)
	if err := cluster.List(ctx, reader, &namespaces, &flavors, &cohorts, &queues, &locals, &limits, &workloads); err != nil {
		return nil, err
	}
	c := &converter{from: s.previous, to: map[any]any{}}
	n := &simulate.Snapshot{Time: now, KueueVersion: s.version, Configuration: s.configuration}
	for i := range namespaces.Items {
		o := &namespaces.Items[i]
		n.Namespaces = append(n.Namespaces, converted(c, o, func() *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.Labels}}
		}))
	}
	omits := map[simulate.Omission]bool{}
	for i := range flavors.Items {
		o := &flavors.Items[i]
		if o.Spec.TopologyName != nil {
			omits[simulate.OmittedTopology] = true
		}
		n.Flavors = append(n.Flavors, converted(c, o, func() *kueue.ResourceFlavor {
			slim := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Spec: *o.Spec.DeepCopy()}
			slim.Spec.TopologyName = nil
			return slim
		}))
	}
	for i := range cohorts.Items {
		o := &cohorts.Items[i]
		n.Cohorts = append(n.Cohorts, converted(c, o, func() *kueue.Cohort {
			return &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Spec: *o.Spec.DeepCopy()}
		}))
	}
	checks := map[kueue.AdmissionCheckReference]bool{}
	for i := range queues.Items {
		o := &queues.Items[i]
		n.ClusterQueues = append(n.ClusterQueues, converted(c, o, func() *kueue.ClusterQueue {
			return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, Generation: o.Generation, DeletionTimestamp: o.DeletionTimestamp}, Spec: *o.Spec.DeepCopy(),
				Status: kueue.ClusterQueueStatus{Conditions: active(o)}}
		}))
		if o.Spec.AdmissionScope != nil {
			omits[simulate.OmittedUsageHistory] = true
		}
		if s := o.Spec.AdmissionChecksStrategy; s != nil {
			omits[simulate.OmittedChecks] = omits[simulate.OmittedChecks] || len(s.AdmissionChecks) > 0
			for _, rule := range s.AdmissionChecks {
				checks[rule.Name] = true
			}
		}
	}
	for i := range locals.Items {
		o := &locals.Items[i]
		n.LocalQueues = append(n.LocalQueues, converted(c, o, func() *kueue.LocalQueue {
			return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Spec: *o.Spec.DeepCopy()}
		}))
	}
	for i := range limits.Items {
		o := &limits.Items[i]
		n.LimitRanges = append(n.LimitRanges, converted(c, o, func() *corev1.LimitRange {
			return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Spec: *o.Spec.DeepCopy()}
		}))
	}
	for name := range checks {
		n.AdmissionChecks = append(n.AdmissionChecks, &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: string(name)},
			Status: kueue.AdmissionCheckStatus{Conditions: []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue}}}})
	}
	for i := range workloads.Items {
		if o := &workloads.Items[i]; !meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished) {
			n.Workloads = append(n.Workloads, converted(c, o, func() *kueue.Workload { return Workload(o) }))
			for _, part := range Omitted(o) {
				omits[part] = true
			}
		}
	}
	s.previous = c.to
	omits[simulate.OmittedTasks] = s.tooLarge(n)
	for part, used := range omits {
		if used {
			n.Omitted = append(n.Omitted, part)
		}
	}
	slices.Sort(n.Omitted)
	return n, nil
}

// active returns the condition that reports whether a queue is active.
func active(q *kueue.ClusterQueue) []metav1.Condition {
	if c := meta.FindStatusCondition(q.Status.Conditions, kueue.ClusterQueueActive); c != nil {
		return []metav1.Condition{*c}
	}
	return nil
}

// converter remembers what objects of the cache were converted to, by their UID and
// version, so that what did not change stays the same object from one snapshot to
// the next.
type converter struct{ from, to map[any]any }

// version identifies one state of one object.
type version struct{ uid, resourceVersion string }

func converted[T client.Object](c *converter, o client.Object, convert func() T) T {
	key := version{string(o.GetUID()), o.GetResourceVersion()}
	known, ok := c.from[key].(T)
	if !ok {
		known = convert()
	}
	c.to[key] = known
	return known
}

// ModuleVersion returns the version of Kueue whose scheduler simulates, such as
// v0.19.2; empty if the program was built without it.
var ModuleVersion = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "sigs.k8s.io/kueue" {
			return module.Version
		}
	}
	return ""
})

// VersionNote returns what a page says about a report if the cluster does not run
// the minor version of Kueue that simulates, or sets feature gates that this version
// does not have; empty if there is nothing to say. The report may be nil.
func VersionNote(s *simulate.Snapshot, r *simulate.Report) string {
	return versionNote(ModuleVersion(), s, r)
}

func versionNote(own string, s *simulate.Snapshot, r *simulate.Report) string {
	if own == "" {
		return ""
	}
	var notes []string
	if theirs := minorOf(s.KueueVersion); theirs != "" && theirs != minorOf(own) {
		notes = append(notes, fmt.Sprintf("The cluster runs Kueue %s, and this is simulated with %s, which can decide differently.", s.KueueVersion, own))
	}
	if r != nil && len(r.UnknownGates) > 0 {
		what := "feature gate"
		if len(r.UnknownGates) > 1 {
			what += "s"
		}
		notes = append(notes, fmt.Sprintf("Kueue %s does not have the %s %s of the cluster.", own, what, strings.Join(r.UnknownGates, ", ")))
	}
	return strings.Join(notes, " ")
}

// minorOf returns the minor version of a version such as v0.19.2: v0.19.
func minorOf(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if minor == "" {
		return ""
	}
	return major + "." + minor
}
