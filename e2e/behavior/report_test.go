package behavior_test

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report returns the state of the scenario's queues and tasks in Kueue, for
// failure messages.
func (s *scenario) report() string {
	var b strings.Builder
	for _, m := range s.teams {
		total, borrowed, err := m.usage()
		fmt.Fprintf(&b, "%s uses %d GPUs, %d of them borrowed", m.role, total, borrowed)
		if queue, failed := m.queue(); err != nil || failed != nil {
			fmt.Fprintf(&b, "; get its ClusterQueue: %v %v\n", err, failed)
		} else {
			fmt.Fprintf(&b, "; %d admitted, %d pending; ", queue.Status.AdmittedWorkloads, queue.Status.PendingWorkloads)
			if share := queue.Status.FairSharing; share != nil {
				fmt.Fprintf(&b, "weighted share %d; ", share.WeightedShare)
			}
			for _, c := range queue.Status.Conditions {
				fmt.Fprintln(&b, describe(&c))
			}
		}
		b.WriteString(m.reportTasks())
	}
	return b.String()
}

// reportTasks describes the team's tasks. It names the first of tasks with the same
// state and counts the others.
func (m *team) reportTasks() string {
	var order []string
	names := map[string][]string{}
	for _, k := range m.tasks {
		text := k.describe()
		if names[text] == nil {
			order = append(order, text)
		}
		names[text] = append(names[text], k.name)
	}
	var b strings.Builder
	for _, text := range order {
		same := names[text]
		fmt.Fprintf(&b, "  %s", same[0])
		if len(same) > 1 {
			fmt.Fprintf(&b, " and %d like it", len(same)-1)
		}
		fmt.Fprintf(&b, ": %s\n", text)
	}
	return b.String()
}

// uid matches the UID of the preemptor in a condition's message. It differs
// between tasks that are otherwise in the same state.
var uid = regexp.MustCompile(` \(UID: [^)]*\)`)

// describe returns a task's conditions that are True, and its QuotaReserved
// condition, which says why the task is pending.
func (k *task) describe() string {
	w, err := k.workload()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	priority := int32(0)
	if w.Spec.Priority != nil {
		priority = *w.Spec.Priority
	}
	fmt.Fprintf(&b, "%d pods, priority %d, evicted %d times", *k.job.Spec.Parallelism, priority, evictions(w))
	for _, c := range w.Status.Conditions {
		if c.Status == metav1.ConditionTrue || c.Type == "QuotaReserved" {
			b.WriteString("\n    " + uid.ReplaceAllString(describe(&c), ""))
		}
	}
	return b.String()
}

func describe(c *metav1.Condition) string {
	if c == nil {
		return "missing"
	}
	return fmt.Sprintf("%s=%s/%s %q", c.Type, c.Status, c.Reason, c.Message)
}
