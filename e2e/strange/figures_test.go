package strange_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

type task struct {
	Namespace, Kind, Name, Path, Team, Status, Reason string
}

// tasks returns those of the scenario.
func (r *reader) tasks(ctx context.Context, namespaces []string) (all []task, err error) {
	for page := 1; ; page++ {
		var list struct {
			Pages int
			Tasks []task
		}
		if err := r.json(ctx, fmt.Sprintf("/tasks.json?page=%d", page), &list); err != nil {
			return nil, err
		}
		for _, t := range list.Tasks {
			if slices.Contains(namespaces, t.Namespace) {
				all = append(all, t)
			}
		}
		if page >= list.Pages {
			return all, nil
		}
	}
}

// checkTasks compares the status and the reason of each task with its Workload.
func (r *reader) checkTasks(ctx context.Context, c *cluster) (wrong []string, err error) {
	workloads, err := c.workloads(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := r.tasks(ctx, c.namespaces)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		at := slices.IndexFunc(workloads, func(w kueue.Workload) bool { return w.Namespace == t.Namespace && belongs(w, t) })
		if at < 0 {
			continue // a job without a Workload
		}
		w := workloads[at]
		waits := t.Status == "Pending"
		admitted := meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted)
		if finished := meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished); waits && (admitted || finished) {
			wrong = append(wrong, fmt.Sprintf("%s: status %s, Kueue admitted it: %t, it finished: %t", t.Path, t.Status, admitted, finished))
		}
		if !waits {
			if (t.Status == "Running" || t.Status == "Starting") && !admitted {
				wrong = append(wrong, fmt.Sprintf("%s: status %s, Kueue has not admitted it", t.Path, t.Status))
			}
			continue
		}
		var why struct {
			Why struct{ Headline, Text, Differs string }
		}
		if err := r.json(ctx, t.Path+"/why.json", &why); err != nil {
			return nil, err
		}
		reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if strings.HasPrefix(why.Why.Headline, "It fits") && reserved != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %q, Kueue: %s: %s", t.Path, why.Why.Headline, reserved.Reason, reserved.Message))
		}
		ofQueue := strings.HasPrefix(why.Why.Headline, "Its queue") || strings.HasPrefix(why.Why.Headline, "Its LocalQueue") // Kueue does not write to the tasks of a queue that stops
		if why.Why.Differs != "" && !ofQueue {
			wrong = append(wrong, fmt.Sprintf("%s: %q differs from Kueue's: %s", t.Path, why.Why.Headline, why.Why.Differs))
		}
	}
	for _, w := range workloads {
		if len(w.OwnerReferences) == 0 && !slices.ContainsFunc(tasks, func(t task) bool { return t.Namespace == w.Namespace && t.Name == w.Name }) {
			wrong = append(wrong, fmt.Sprintf("Workload %s/%s is no task", w.Namespace, w.Name))
		}
	}
	return wrong, nil
}

func belongs(w kueue.Workload, t task) bool {
	if len(w.OwnerReferences) > 0 {
		return w.OwnerReferences[0].Name == t.Name && strings.EqualFold(w.OwnerReferences[0].Kind, t.Kind)
	}
	return w.Name == t.Name
}

// checkQueues compares the used amounts of the teams with the status of their
// ClusterQueues. compared is how many were.
func (r *reader) checkQueues(ctx context.Context, c *cluster) (compared int, wrong []string, err error) {
	var allocations v1alpha1.ComputeAllocationList
	if err := c.List(ctx, &allocations); err != nil {
		return 0, nil, err
	}
	teams := map[string]string{} // by ClusterQueue
	for _, a := range allocations.Items {
		teams[a.Spec.ClusterQueueName] = a.Name
	}
	var queues kueue.ClusterQueueList
	if err := c.List(ctx, &queues); err != nil {
		return 0, nil, err
	}
	want := map[string]map[string]float64{} // by resource and team
	for _, q := range queues.Items {
		team := teams[q.Name]
		if !strings.HasPrefix(q.Name, c.prefix) || !q.DeletionTimestamp.IsZero() || team == "" {
			continue
		}
		for _, f := range q.Status.FlavorsReservation {
			for _, used := range f.Resources {
				name := string(used.Name)
				if want[name] == nil {
					want[name] = map[string]float64{}
				}
				want[name][team] += amount(name, used.Total)
			}
		}
	}
	for name, byTeam := range want {
		got, err := r.used(ctx, name)
		if err != nil {
			return 0, nil, err
		}
		for team, n := range byTeam {
			shown, ok := got[team]
			if got == nil {
				continue
			}
			compared++
			if !ok || math.Abs(shown-n) > 0.011+n*1e-3 {
				wrong = append(wrong, fmt.Sprintf("team %s uses %v of %s, its ClusterQueue %v", team, shown, name, n))
			}
		}
	}
	return compared, wrong, nil
}

// used returns what the teams use of a resource, by name.
func (r *reader) used(ctx context.Context, resource string) (map[string]float64, error) {
	found := map[string]float64{}
	for page := 1; ; page++ {
		var list struct {
			Resource string
			Pages    int
			Teams    []struct {
				Name string
				Used *json.Number
			}
		}
		if err := r.json(ctx, fmt.Sprintf("/teams.json?resource=%s&page=%d", url.QueryEscape(resource), page), &list); err != nil {
			return nil, err
		}
		if list.Resource != resource {
			return nil, nil // the console does not list the resource
		}
		for _, t := range list.Teams {
			if t.Used != nil {
				found[t.Name], _ = t.Used.Float64()
			}
		}
		if page >= list.Pages {
			return found, nil
		}
	}
}

// amount returns a quantity as teams.json has it: memory in GiB.
func amount(name string, q resource.Quantity) float64 {
	n := q.AsApproximateFloat64()
	if name == "memory" || name == "ephemeral-storage" || name == "storage" || strings.HasPrefix(name, "hugepages-") {
		n /= 1 << 30
	}
	return n
}
