package behavior_test

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tell is what Kueue says of a story's queues and tasks, for people who read
// why a test failed.
func (s *story) tell() string {
	var b strings.Builder
	for _, m := range s.teams {
		held, borrowed, err := m.held()
		fmt.Fprintf(&b, "%s holds %d GPUs, %d of them borrowed", m.role, held, borrowed)
		if queue, failed := m.queue(); err != nil || failed != nil {
			fmt.Fprintf(&b, "; its queue cannot be read: %v %v\n", err, failed)
		} else {
			fmt.Fprintf(&b, "; %d admitted, %d pending; ", queue.Status.AdmittedWorkloads, queue.Status.PendingWorkloads)
			if share := queue.Status.FairSharing; share != nil {
				fmt.Fprintf(&b, "weighted share %d; ", share.WeightedShare)
			}
			for _, c := range queue.Status.Conditions {
				fmt.Fprintln(&b, describe(&c))
			}
		}
		b.WriteString(m.tellTasks())
	}
	return b.String()
}

// tellTasks describes the team's tasks. Of those that are alike the first is
// described, and the others counted.
func (m *team) tellTasks() string {
	var order []string
	alike := map[string][]string{}
	for _, k := range m.tasks {
		text := k.describe()
		if alike[text] == nil {
			order = append(order, text)
		}
		alike[text] = append(alike[text], k.name)
	}
	var b strings.Builder
	for _, text := range order {
		names := alike[text]
		fmt.Fprintf(&b, "  %s", names[0])
		if len(names) > 1 {
			fmt.Fprintf(&b, " and %d like it", len(names)-1)
		}
		fmt.Fprintf(&b, ": %s\n", text)
	}
	return b.String()
}

// preemptor names the task that another made room for; each has its own.
var preemptor = regexp.MustCompile(` \(UID: [^)]*\)`)

// describe is a task in a few lines: what is True of it, and why it waits.
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
			b.WriteString("\n    " + preemptor.ReplaceAllString(describe(&c), ""))
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
