package tasks

import (
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks/queries"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// timeLimitWords describes the time limit of a task, and when it is reached if the task
// keeps its quota until then; empty for no limit.
func timeLimitWords(d queries.Detail) string {
	if d.TimeLimit == 0 {
		return ""
	}
	words := limitWords(d.TimeLimit)
	elastic := d.Kind == v1alpha1.ElasticJobKind
	if elastic {
		words += " after each start of its minimum"
	}
	if !d.State.UsesQuota() || d.AdmittedAt.IsZero() || elastic {
		return words
	}
	return words + ", reached at " + d.AdmittedAt.Add(d.TimeLimit-d.RanBefore).UTC().Format("2006-01-02 15:04") + " (UTC)"
}

// timedOutWords explains that a task reached its time limit. Kueue counts the time of
// all admissions, and stops a resumed task after what is left.
func timedOutWords(d queries.Detail) string {
	text := fmt.Sprintf("It had its quota for %s, which is its time limit, so Kueue deactivated its Workload. ", limitWords(d.TimeLimit))
	if left := d.TimeLimit - d.RanBefore; left >= time.Minute {
		return text + fmt.Sprintf("Resumed, it can run for another %s; submit it again for more.", limitWords(left.Truncate(time.Second)))
	}
	return text + "Resumed, it would be stopped again at once: submit it again, with a longer time limit if it needs one."
}

// limitWords formats a time limit as users type it, such as 1h30m.
func limitWords(limit time.Duration) string {
	return describe.Duration(&metav1.Duration{Duration: limit})
}
