package estimate

import (
	"math/rand/v2"
	"slices"
	"time"
)

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
