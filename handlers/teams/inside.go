package teams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	teamviews "kuota.dev/kuota/views/teams"

	corev1 "k8s.io/api/core/v1"
)

// insideView returns the table of the shares of a team; nil without shares.
func insideView(shares []queries.QueueShare, now time.Time) *teamviews.InsideShares {
	if len(shares) < 2 { // only the team's queue
		return nil
	}
	view := &teamviews.InsideShares{}
	var usage, weight float64
	var sampled time.Time
	for _, s := range shares {
		usage, weight = usage+s.Usage, weight+s.Weight
		if s.SampledAt.After(sampled) {
			sampled = s.SampledAt
		}
	}
	view.Note, view.Counted = "Kueue does not count usage now", !sampled.IsZero()
	if view.Counted {
		view.Note = "usage as of " + format.Age(now.Sub(sampled)) + " ago"
	}
	for _, s := range shares {
		row := teamviews.InsideRow{
			ID: "inside-" + s.Queue, Name: cmp.Or(s.Name, "The team's queue"), Queue: s.Queue, Weight: strconv.FormatFloat(s.Weight, 'f', -1, 64),
			Usage: decayed(s.Consumed), Part: "–", Fair: percent(s.Weight, weight), Running: format.Thousands(int64(s.Admitted)), Waiting: format.Thousands(int64(s.Pending)),
		}
		if usage > 0 {
			row.Part = percent(s.Usage, usage)
		}
		view.Rows = append(view.Rows, row)
	}
	return view
}

func percent(part, whole float64) string { return fmt.Sprintf("%.0f %%", 100*part/whole) }

// decayed formats the average usage of resources, such as "10.4 GPUs".
func decayed(consumed corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(consumed), func(a, b corev1.ResourceName) int { return quota.Compare(string(a), string(b)) }) {
		amount := consumed[name]
		number, unit := amount.AsApproximateFloat64(), format.ResourceLabel(string(name))
		if name == catalog.Memory {
			number, unit = number/float64(catalog.GiB), "GiB"
		}
		parts = append(parts, strconv.FormatFloat(number, 'f', 1, 64)+" "+unit)
	}
	return format.OrDash(strings.Join(parts, ", "))
}
