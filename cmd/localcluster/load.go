package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// longestName leaves room for a number behind a step's name, and for a pod's
// behind that.
const longestName = 40

// load is what the sample teams do, over and over: see samples/load.yaml.
type load struct {
	repeat       time.Duration          // from the start of one round to that of the next
	keep         time.Duration          // how long a job is there after it ended
	accelerators map[string]accelerator // by the name that steps call them
	steps        []step                 // by when
}

// accelerator is what pods ask for with each one.
type accelerator struct {
	InstanceType string // that pods are bound to
	Resource     string // as Kubernetes calls it
	CPU, Memory  string
}

// step is one job of each round.
type step struct {
	at    time.Duration // from the start of the round
	team  string
	name  string
	class string // empty for none
	of    string // which accelerator
	each  int64  // how many of them a pod asks for
	pods  int64  // at once
	runs  time.Duration
}

// writtenLoad is a load as its file has it.
type writtenLoad struct {
	Repeat, Keep string
	Accelerators map[string]accelerator
	Steps        []struct {
		At, Team, Name, Class, Of, Runs string
		Each, Pods                      *int64
	}
}

// readLoad reads a load, and tells all that is wrong with it.
func readLoad(path string) (*load, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read load: %w", err)
	}
	l, err := parseLoad(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func parseLoad(b []byte) (*load, error) {
	var written writtenLoad
	if err := yaml.UnmarshalStrict(b, &written); err != nil {
		return nil, fmt.Errorf("this is no load: %w", err)
	}
	var wrong []error
	tell := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	length := func(what, text string, least time.Duration) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			tell("%s: %q is no length of time; write one such as 90s or 4m", what, text)
		} else if d < least {
			tell("%s: %s is too short; use %s or more", what, text, least)
		}
		return d
	}
	l := &load{repeat: length("repeat", written.Repeat, time.Minute), keep: length("keep", written.Keep, time.Second), accelerators: written.Accelerators}
	if l.keep > l.repeat {
		tell("keep: %s is longer than a round of %s, and there would be ever more jobs", l.keep, l.repeat)
	}
	for name, a := range l.accelerators {
		if a.InstanceType == "" || a.Resource == "" {
			tell("accelerators.%s: say its instanceType and resource", name)
		}
		for field, text := range map[string]string{"cpu": a.CPU, "memory": a.Memory} {
			if _, err := resource.ParseQuantity(text); err != nil {
				tell("accelerators.%s.%s: %q is no amount; write one such as 12 or 128Gi", name, field, text)
			}
		}
	}
	if len(written.Steps) == 0 {
		tell("steps: there are none, and nothing would happen")
	}
	count := func(what string, given *int64) int64 {
		if given == nil {
			return 1
		}
		if *given < 1 || *given > 100 {
			tell("%s: %d is not from 1 to 100", what, *given)
		}
		return *given
	}
	seen := map[string]bool{}
	for i, w := range written.Steps {
		what := fmt.Sprintf("step %d (%s)", i+1, cmp.Or(w.Name, "without a name"))
		s := step{
			at: length(what+": at", w.At, 0), team: w.Team, name: w.Name, class: w.Class, of: w.Of, runs: length(what+": runs", w.Runs, time.Second),
			each: count(what+": each", w.Each), pods: count(what+": pods", w.Pods),
		}
		if s.at >= l.repeat {
			tell("%s: at %s it would come after the next round began; repeat is %s", what, w.At, written.Repeat)
		}
		for field, name := range map[string]string{"team": s.team, "name": s.name} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longestName {
				tell("%s: %s %q: use at most %d lower-case letters, digits and hyphens", what, field, name, longestName)
			}
		}
		if job := s.team + "/" + s.name; seen[job] {
			tell("%s: team %s has a step of this name already", what, s.team)
		} else {
			seen[job] = true
		}
		if _, known := l.accelerators[s.of]; !known {
			tell("%s: of %q: name one of the accelerators above", what, s.of)
		}
		l.steps = append(l.steps, s)
	}
	slices.SortStableFunc(l.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	// Maps have no order, and the same mistakes are told in the same way.
	slices.SortStableFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, errors.Join(wrong...)
}
