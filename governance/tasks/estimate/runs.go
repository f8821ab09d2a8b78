package estimate

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MinRuns is how many runs must be recorded before anything is estimated, and of
// how many a group consists at least.
const MinRuns = 30

// Kind is what the run time of a task depends on.
type Kind struct {
	Team, Class string
	Pattern     string // of its name: see Pattern
}

// generated matches what scripts and controllers put into names: numbers, hashes,
// and the suffixes of Kubernetes.
var generated = regexp.MustCompile(`^([0-9]+|[0-9a-f]{6,}|[a-z]*[0-9]+[a-z][a-z0-9]{3,}|[a-z]{1,3}[0-9]+[a-z][a-z0-9]+|[bcdfghjklmnpqrstvwxz2456789]{5})$`)

// Pattern returns the name of a task without the parts that differ between tasks of
// one kind, such as numbers and hashes: train-resnet50-7f3k2 is train-resnet, and
// sizes as in llama-8b remain.
func Pattern(name string) string {
	var words []string
	for _, word := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '.' || r == '_' }) {
		if !generated.MatchString(word) {
			words = append(words, strings.TrimRight(word, "0123456789"))
		}
	}
	return strings.Join(words, "-")
}

// Run is a run that ended by itself.
type Run struct {
	Kind
	Length time.Duration
}

// Runs are past runs. Their methods are safe for concurrent use.
type Runs struct {
	groups map[Kind][]time.Duration // sorted
	count  int
}

// NewRuns groups runs.
func NewRuns(all []Run) *Runs {
	r := &Runs{groups: map[Kind][]time.Duration{}, count: len(all)}
	for _, run := range all {
		for _, group := range groups(run.Kind) {
			r.groups[group] = append(r.groups[group], run.Length)
		}
	}
	for _, group := range r.groups {
		slices.Sort(group)
	}
	return r
}

// Count returns the number of runs.
func (r *Runs) Count() int { return r.count }

// groups returns the groups of a kind, the finest first. The last has all runs.
func groups(k Kind) []Kind {
	return []Kind{k, {Team: k.Team, Pattern: k.Pattern}, {Team: k.Team, Class: k.Class}, {Team: k.Team}, {Class: k.Class}, {}}
}

// Draw returns how long a task runs that has run for elapsed: the length of a past
// run of its kind that took longer, by chance. ok is false if too few runs are known.
func (r *Runs) Draw(k Kind, elapsed time.Duration, random *rand.Rand) (length time.Duration, ok bool) {
	if r.count < MinRuns {
		return 0, false
	}
	for _, group := range groups(k) {
		known := r.groups[group]
		if len(known) < MinRuns {
			continue
		}
		from, _ := slices.BinarySearch(known, elapsed+1)
		if longer := known[from:]; len(longer) >= minLonger || group == (Kind{}) && len(longer) > 0 {
			return longer[random.IntN(len(longer))], true
		}
	}
	// It has run for longer than any other task: as long again, on average.
	return elapsed + time.Duration(2*random.Float64()*float64(elapsed)), true
}

// minLonger is of how many runs one is drawn at least.
const minLonger = 5

// Submission is a task that was submitted, or that a draw submits.
type Submission struct {
	Kind
	At       time.Time
	Workload int // that it has, by a number of the caller
}

// Submissions are past submissions, the oldest first. None is missing since then.
type Submissions []Submission

// repeatedDays is how many of the last days are repeated.
const repeatedDays = 14

const day = 24 * time.Hour

// Since returns from when on submissions matter.
func Since(now time.Time) time.Time { return now.Add(-repeatedDays * day) }

// Draw returns what is submitted between now and the horizon, the first one first: each
// day is a past day again, chosen by chance, that fell into the same part of the week
// if there is one. It returns nothing before a whole day is known.
func (s Submissions) Draw(now time.Time, horizon time.Duration, random *rand.Rand) (later []Submission) {
	if len(s) == 0 {
		return nil
	}
	for from := time.Duration(0); from < horizon; from += day {
		ago, ok := s.dayLike(now, now.Add(from), random)
		if !ok {
			return later
		}
		for _, one := range s.between(now.Add(-ago), now.Add(-ago+min(day, horizon-from))) {
			one.At = one.At.Add(ago + from)
			later = append(later, one)
		}
	}
	return later
}

// dayLike returns how long ago the day began that is repeated at a time.
func (s Submissions) dayLike(now, at time.Time, random *rand.Rand) (ago time.Duration, ok bool) {
	var like, all []time.Duration
	for ago := day; ago <= repeatedDays*day && !now.Add(-ago).Before(s[0].At); ago += day {
		if all = append(all, ago); weekend(now.Add(-ago)) == weekend(at) {
			like = append(like, ago)
		}
	}
	if len(like) == 0 {
		like = all
	}
	if len(like) == 0 {
		return 0, false
	}
	return like[random.IntN(len(like))], true
}

// weekend reports whether most of the day that begins then is on a weekend.
func weekend(begin time.Time) bool {
	middle := begin.Add(day / 2).Weekday()
	return middle == time.Saturday || middle == time.Sunday
}

// between returns the submissions from a time until another.
func (s Submissions) between(from, to time.Time) Submissions {
	index := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(s, at, func(one Submission, at time.Time) int { return one.At.Compare(at) })
		return i
	}
	return s[index(from):index(to)]
}
