package alerts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
)

func nameOf(t *tasks.Task) string { return t.Kind + " " + t.Name }

func className(object string) string { return strings.TrimSuffix(object, "-priority") }

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return quota.Thousands(strconv.Itoa(n)) + " " + noun
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func percent(n int) string { return strconv.Itoa(n) + "%" }

// moment formats a time, which does not change while the time passes: a summary that
// changes is saved again.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// duration formats a threshold, such as "3 days" or "5 minutes".
func duration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		noun string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= unit.of && d%unit.of == 0 {
			return count(int(d/unit.of), unit.noun)
		}
	}
	if d%time.Second == 0 {
		return count(int(d/time.Second), "second")
	}
	return d.String()
}

// sentence returns text as a sentence.
func sentence(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".")
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s%s.", strings.ToUpper(text[:1]), text[1:])
}
