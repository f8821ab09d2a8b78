package preview

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Ties are broken in maxTies orders, and in one beyond maxTied Workloads: each order
// takes two simulations, which then take seconds.
const (
	maxTies = 3
	maxTied = 2000
)

// asking is how a change is simulated.
type asking struct {
	limit string // whose limit of questions it counts for
	ties  int    // in how many orders ties are broken, unless there are more than maxTied Workloads
}

// reviewed is how a change is simulated that a user reviews, and typed one that is typed.
func reviewed(user governance.User) asking { return asking{user.Name, maxTies} }
func typed(user governance.User) asking    { return asking{user.Name + ", typing", 1} }

// orders returns in how many orders ties are broken.
func (a asking) orders(s *simulate.Snapshot) int {
	if len(s.Workloads) > maxTied {
		return 1
	}
	return a.ties
}

// Service previews changes.
type Service struct {
	Cluster   *cluster.Cluster
	Access    *access.Service
	Naming    desired.Naming
	Simulator *live.Simulator
	Tasks     *queries.Service
	// Kueue returns Kueue's configuration as it is under a policy.
	Kueue func(context.Context, *v1alpha1.ClusterPolicySpec) (kueueconfig.Current, error)
	// Priorities returns the priority of tasks under a policy, by the name of their
	// WorkloadPriorityClass.
	Priorities func(context.Context, *v1alpha1.ClusterPolicy) (map[string]int32, error)
	Log        *slog.Logger
}

// Allocation previews saving an allocation, with pools that are created with it. One
// without a resourceVersion is new.
func (s *Service) Allocation(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (queries.Preview, error) {
	return s.allocation(ctx, user, reviewed(user), allocation, pools)
}

// Typed is Allocation while the user types: it breaks ties in one order, and counts apart
// from other questions of the user.
func (s *Service) Typed(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (queries.Preview, error) {
	return s.allocation(ctx, user, typed(user), allocation, pools)
}

// Allocations previews saving several allocations together.
func (s *Service) Allocations(ctx context.Context, user governance.User, allocations []*v1alpha1.ComputeAllocation) (queries.Preview, error) {
	return s.save(ctx, user, reviewed(user), allocations, nil)
}

func (s *Service) allocation(ctx context.Context, user governance.User, how asking, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (queries.Preview, error) {
	return s.save(ctx, user, how, []*v1alpha1.ComputeAllocation{allocation}, pools)
}

// save previews saving allocations, with pools that are created with them. The figures of the
// team are in it if it is one.
func (s *Service) save(ctx context.Context, user governance.User, how asking, allocations []*v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (queries.Preview, error) {
	is, before, err := s.read(ctx)
	if err != nil {
		return queries.Preview{}, err
	}
	for _, allocation := range allocations {
		allowed := s.Access.MayCreateAllocations
		if allocation.ResourceVersion != "" {
			allowed = s.Access.MayUpdateAllocations
		}
		departments := []string{allocation.Spec.Department}
		for i := range before.allocations {
			if a := &before.allocations[i]; a.Name == allocation.Name {
				departments = append(departments, a.Spec.Department)
			}
		}
		if err := s.require(ctx, user, allowed, departments...); err != nil {
			return queries.Preview{}, err
		}
	}
	after := *before
	after.types = before.types.With(pools...)
	after.allocations = slices.Clone(before.allocations)
	var own []queries.ObjectDiff
	subject := ""
	for _, allocation := range allocations {
		next := v1alpha1.ComputeAllocation{Spec: *allocation.Spec.DeepCopy()}
		next.Name = allocation.Name
		old := ""
		i := slices.IndexFunc(after.allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == allocation.Name })
		if i >= 0 {
			old = manifest.AllocationYAML(&after.allocations[i])
			next.Status = *after.allocations[i].Status.DeepCopy()
		} else {
			i, after.allocations = len(after.allocations), append(after.allocations, v1alpha1.ComputeAllocation{})
		}
		next.Status.Active, _ = effective.At(&next, time.Now())
		after.allocations[i] = next
		if _, errs := quota.Resolve(&next.Spec, after.types); len(errs) > 0 {
			return queries.Preview{}, &governance.Error{Kind: governance.Invalid, Op: "preview allocation", Message: "Some values are not valid.", Fields: errs}
		}
		own = append(own, queries.ObjectDiff{Kind: manifest.KindAllocation, Name: next.Name, Queue: desired.ClusterQueueName(&next, after.under()), Lines: compareYAML(old, manifest.AllocationYAML(&next))})
		if len(allocations) == 1 {
			subject = next.Name
		}
	}
	change, err := changeOf(is, before, &after)
	if err != nil {
		return queries.Preview{}, err
	}
	return s.ask(ctx, user, how, change, before, &after, subject, append(own, diffs(&change, is)...))
}

// Department previews saving a department. One without a resourceVersion is new. The caller has
// checked that the user may.
func (s *Service) Department(ctx context.Context, user governance.User, department *v1alpha1.Department) (queries.Preview, error) {
	return s.department(ctx, user, reviewed(user), department)
}

// TypedDepartment previews saving a department while it is typed: see Typed.
func (s *Service) TypedDepartment(ctx context.Context, user governance.User, department *v1alpha1.Department) (queries.Preview, error) {
	return s.department(ctx, user, typed(user), department)
}

func (s *Service) department(ctx context.Context, user governance.User, how asking, department *v1alpha1.Department) (queries.Preview, error) {
	next := v1alpha1.Department{Spec: *department.Spec.DeepCopy()}
	next.Name = department.Name
	return s.departments(ctx, user, how, department.Name, &next)
}

// DepartmentDeletion previews the deletion of a department. The caller has checked that the user
// may.
func (s *Service) DepartmentDeletion(ctx context.Context, user governance.User, name string) (queries.Preview, error) {
	return s.departments(ctx, user, reviewed(user), name, nil)
}

// departments previews another spec of a department; nil for its deletion.
func (s *Service) departments(ctx context.Context, user governance.User, how asking, name string, next *v1alpha1.Department) (queries.Preview, error) {
	is, before, err := s.read(ctx)
	if err != nil {
		return queries.Preview{}, err
	}
	after := *before
	after.departments = slices.DeleteFunc(slices.Clone(before.departments), func(d v1alpha1.Department) bool { return d.Name == name })
	if next != nil {
		for i := range before.departments {
			if before.departments[i].Name == name {
				next.Status = *before.departments[i].Status.DeepCopy()
			}
		}
		next.Status.Active, _ = effective.At(next.Allocation(), time.Now())
		if _, errs := quota.Resolve(&next.Allocation().Spec, after.types); len(errs) > 0 {
			return queries.Preview{}, &governance.Error{Kind: governance.Invalid, Op: "preview department", Message: "Some values are not valid.", Fields: errs}
		}
		after.departments = append(after.departments, *next)
	}
	change, err := changeOf(is, before, &after)
	if err != nil {
		return queries.Preview{}, err
	}
	return s.ask(ctx, user, how, change, before, &after, "", diffs(&change, is))
}

// require returns an error unless user may change every allocation, as allowed reports, or is an
// admin of all of these departments.
func (s *Service) require(ctx context.Context, user governance.User, allowed func(context.Context, governance.User) (bool, error), departments ...string) error {
	may, err := allowed(ctx, user)
	if err != nil || may {
		return err
	}
	governed, err := s.Access.Delegated(ctx, user)
	if err != nil {
		return err
	}
	if governed.Empty() || slices.ContainsFunc(departments, func(d string) bool { return !governed.Includes(d) }) {
		return access.Forbidden("preview")
	}
	return nil
}

// Activation previews another activation of a team's queue, such as Hold.
func (s *Service) Activation(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, to v1alpha1.Activation) (queries.Preview, error) {
	next := allocation.DeepCopy()
	next.Spec.Activation = to
	return s.Allocation(ctx, user, next, nil)
}

// Deletion previews the deletion of the allocations of teams. Tasks that are admitted are
// requeued. The figures of the team are in it if it is one.
func (s *Service) Deletion(ctx context.Context, user governance.User, teams ...string) (queries.Preview, error) {
	is, before, err := s.read(ctx)
	if err != nil {
		return queries.Preview{}, err
	}
	departments := []string{}
	for i := range before.allocations {
		if a := &before.allocations[i]; slices.Contains(teams, a.Name) {
			departments = append(departments, a.Spec.Department)
		}
	}
	if len(departments) < len(teams) { // not even whether a team exists is for others
		departments = append(departments, "")
	}
	if err := s.require(ctx, user, s.Access.MayDeleteAllocations, departments...); err != nil {
		return queries.Preview{}, err
	}
	after, change, removed, err := deletion(is, before, teams)
	if err != nil {
		return queries.Preview{}, err
	}
	var own []queries.ObjectDiff
	for i := range before.allocations {
		if a := &before.allocations[i]; slices.Contains(teams, a.Name) {
			own = append(own, queries.ObjectDiff{Kind: manifest.KindAllocation, Name: a.Name, Lines: compareYAML(manifest.AllocationYAML(a), "")})
		}
	}
	subject := ""
	if len(teams) == 1 {
		subject = teams[0]
	}
	return s.ask(ctx, user, reviewed(user), change, before, after, subject, append(own, diffs(&removed, is)...))
}

// Action previews an action on tasks that the user sees: class is that of actions.Class.
func (s *Service) Action(ctx context.Context, user governance.User, action actions.Action, list []*tasks.Task, class string) (queries.Preview, error) {
	is, before, err := s.read(ctx)
	if err != nil {
		return queries.Preview{}, err
	}
	var priority kueue.WorkloadPriorityClass
	if action == actions.Class {
		reader, err := s.Cluster.Reader()
		if err == nil {
			err = reader.Get(ctx, client.ObjectKey{Name: class}, &priority)
		}
		if err != nil {
			return queries.Preview{}, cluster.Translate("read priority class", err)
		}
	}
	of := map[types.UID]*tasks.Task{}
	for _, t := range list {
		for _, part := range t.Parts {
			if action == actions.Again && t.IsGrowth(part) {
				continue // it begins with its minimum
			}
			of[part.UID] = t
			if action == actions.Again {
				break // another one is an older slice of the same task
			}
		}
	}
	change := simulate.Change{}
	for i := range is.workloads {
		w := &is.workloads[i]
		switch {
		case of[w.UID] == nil:
			continue
		case action == actions.Again:
			change.Workloads = append(change.Workloads, newCopy(w, of[w.UID], s.Tasks.Index.Now()))
			continue
		case finished(w):
			continue
		}
		if action == actions.Stop || action == actions.Delete {
			change.Removed.Workloads = append(change.Removed.Workloads, client.ObjectKeyFromObject(w))
			continue
		}
		changed := live.Workload(w)
		if action == actions.Resume {
			changed.Spec.Active = nil
		} else {
			changed.Spec.Priority = &priority.Value
		}
		change.Workloads = append(change.Workloads, changed)
	}
	return s.ask(ctx, user, reviewed(user), change, before, before, "", nil)
}

// newCopy returns a Workload as if its task were submitted again now. Pages show its name.
func newCopy(w *kueue.Workload, of *tasks.Task, now time.Time) *kueue.Workload {
	again := live.Workload(w)
	again.Name, again.UID, again.CreationTimestamp = of.Name+" again ("+of.Kind+")", "again "+w.UID, metav1.NewTime(now) // no object can have it
	again.Spec.Active, again.Status = nil, kueue.WorkloadStatus{}
	return again
}

// Policy previews saving the cluster policy.
func (s *Service) Policy(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) (queries.Preview, error) {
	if err := access.Require(ctx, user, s.Access.MayEditPolicy, "preview"); err != nil {
		return queries.Preview{}, err
	}
	is, before, err := s.read(ctx)
	if err != nil {
		return queries.Preview{}, err
	}
	after, next, old := *before, policy.DeepCopy(), ""
	reported := []v1alpha1.ReportedType(nil)
	if before.policy != nil {
		next.Status, old = *before.policy.Status.DeepCopy(), manifest.PolicyYAML(before.policy)
		reported = next.Status.ReportedTypes
	}
	next.Status.Ranking = &v1alpha1.Ranking{Step: v1alpha1.RankingSettled, Active: cmp.Or(next.Spec.TaskPrioritization, v1alpha1.FirstComeFirstServe)}
	after.policy = next
	reader, err := s.Cluster.Reader()
	if err != nil {
		return queries.Preview{}, err
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, reader, &nodes); err != nil {
		return queries.Preview{}, err
	}
	after.types = catalog.New(catalog.Input{Nodes: nodes.Items, InstanceTypeLabel: s.Naming.InstanceTypeLabel, Pools: next.Spec.Pools, ReportedTypes: reported})
	change, err := changeOf(is, before, &after)
	if err != nil {
		return queries.Preview{}, err
	}
	priorities, err := s.Priorities(ctx, next)
	if err != nil {
		return queries.Preview{}, cluster.Translate("read priority classes", err)
	}
	changePriorities(&change, is, priorities)
	kueueAfter, err := s.Kueue(ctx, &next.Spec)
	if err != nil {
		return queries.Preview{}, cluster.Translate("read Kueue's configuration", err)
	}
	configuration, err := live.Configuration(kueueAfter)
	if err != nil {
		return queries.Preview{}, err
	}
	change.Configuration = &configuration
	own := queries.ObjectDiff{Kind: manifest.KindPolicy, Name: v1alpha1.ClusterPolicyName, Lines: compareYAML(old, manifest.PolicyYAML(next))}
	return s.ask(ctx, user, reviewed(user), change, before, &after, "", append([]queries.ObjectDiff{own}, diffs(&change, is)...))
}

// read returns what is in the cluster, and what it follows from.
func (s *Service) read(ctx context.Context) (*existing, *inputs, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, nil, err
	}
	var (
		allocations v1alpha1.ComputeAllocationList
		departments v1alpha1.DepartmentList
		queues      kueue.ClusterQueueList
		locals      kueue.LocalQueueList
		flavors     kueue.ResourceFlavorList
		cohorts     kueue.CohortList
		namespaces  corev1.NamespaceList
		workloads   kueue.WorkloadList
	)
	if err := cluster.List(ctx, reader, &allocations, &departments, &queues, &locals, &flavors, &cohorts, &namespaces, &workloads); err != nil {
		return nil, nil, err
	}
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return nil, nil, err
	}
	known, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return nil, nil, err
	}
	is := &existing{
		queues:     byName(queues.Items, func(o *kueue.ClusterQueue) string { return o.Name }),
		locals:     byName(locals.Items, func(o *kueue.LocalQueue) types.NamespacedName { return client.ObjectKeyFromObject(o) }),
		flavors:    byName(flavors.Items, func(o *kueue.ResourceFlavor) string { return o.Name }),
		cohorts:    byName(cohorts.Items, func(o *kueue.Cohort) string { return o.Name }),
		namespaces: byName(namespaces.Items, func(o *corev1.Namespace) string { return o.Name }),
		workloads:  workloads.Items,
	}
	return is, &inputs{allocations: allocations.Items, departments: departments.Items, policy: policy, types: known, naming: s.Naming}, nil
}

func byName[T any, K comparable](items []T, name func(*T) K) map[K]*T {
	by := make(map[K]*T, len(items))
	for i := range items {
		by[name(&items[i])] = &items[i]
	}
	return by
}

// ask simulates a change between two inputs, which changes these objects.
func (s *Service) ask(ctx context.Context, user governance.User, how asking, change simulate.Change, before, after *inputs, subject string, objects []queries.ObjectDiff) (queries.Preview, error) {
	snapshot, err := s.Simulator.Snapshot(ctx)
	if err == nil && change.Configuration != nil && reflect.DeepEqual(*change.Configuration, snapshot.Configuration) {
		change.Configuration = nil // only then are other cohorts left out
	}
	report := &simulate.Report{Settled: true}
	if err == nil && !reflect.DeepEqual(change, simulate.Change{}) {
		report, snapshot, err = s.Simulator.Ask(ctx, how.limit, &simulate.Question{Change: change, Ties: how.orders(snapshot)})
	}
	if err != nil {
		return queries.Preview{}, s.unverified(err)
	}
	simulated := queries.Simulated{Snapshot: snapshot, Change: change, Report: report, Subject: subject, Queues: before.owners(), Objects: objects}
	maps.Copy(simulated.Queues, after.owners())
	preview, err := s.Tasks.Preview(ctx, user, simulated)
	preview.OneOrder = len(snapshot.Workloads) > maxTied
	return preview, err
}

// unverified returns the error of a change that could not be simulated.
func (s *Service) unverified(err error) error {
	if governance.KindOf(err) != governance.Internal || errors.Is(err, context.Canceled) {
		return err
	}
	reason := live.Reason(err)
	message := strings.ToUpper(reason[:1]) + reason[1:] + "."
	if errors.Is(err, live.ErrTooMany) {
		message += " Wait some seconds, then preview again."
	}
	if !errors.Is(err, live.ErrTooMany) {
		s.Log.Warn("preview not verified", "error", err)
	}
	return &governance.Error{Kind: governance.Unavailable, Op: "simulate", Message: message, Err: err}
}
