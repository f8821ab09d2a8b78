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

// longestName leaves space for the number of the round after a step's name, and
// for the suffix of a pod's name.
const longestName = 40

// load is the script of the sample teams' Jobs: see samples/load.yaml.
type load struct {
	repeat       time.Duration          // from the start of a round to the start of the next
	keep         time.Duration          // how long an ended Job remains
	accelerators map[string]accelerator // by the name that steps use
	steps        []step                 // ordered by offset
}

// accelerator is what a pod requests for each accelerator.
type accelerator struct {
	InstanceType string // the pod's node selector
	Resource     string // the extended resource
	CPU, Memory  string
}

// step is one Job of each round.
type step struct {
	at    time.Duration // offset from the start of the round
	team  string
	name  string
	class string // priority class; empty for none
	of    string // name of the accelerator
	each  int64  // accelerators per pod
	pods  int64  // parallelism
	runs  time.Duration
}

// loadFile is the file of a load.
type loadFile struct {
	Repeat, Keep string
	Accelerators map[string]accelerator
	Steps        []struct {
		At, Team, Name, Class, Of, Runs string
		Each, Pods                      *int64
	}
}

// readLoad reads a load. Its error lists all mistakes in the file.
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

// mistakes collects what is wrong with a file.
type mistakes []error

func (m *mistakes) add(format string, args ...any) { *m = append(*m, fmt.Errorf(format, args...)) }

func (m *mistakes) duration(field, text string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		m.add("%s: %q is not a duration; use one such as 90s or 4m", field, text)
	} else if d < least {
		m.add("%s: %s is too short; use %s or more", field, text, least)
	}
	return d
}

func (m *mistakes) count(field string, value *int64) int64 {
	if value == nil {
		return 1
	}
	if *value < 1 || *value > 100 {
		m.add("%s: %d is not from 1 to 100", field, *value)
	}
	return *value
}

func parseLoad(b []byte) (*load, error) {
	var file loadFile
	if err := yaml.UnmarshalStrict(b, &file); err != nil {
		return nil, fmt.Errorf("not a load: %w", err)
	}
	var wrong mistakes
	l := &load{repeat: wrong.duration("repeat", file.Repeat, time.Minute), keep: wrong.duration("keep", file.Keep, time.Second), accelerators: file.Accelerators}
	if l.keep > l.repeat {
		wrong.add("keep: %s is longer than a round of %s, and the number of Jobs would grow without limit", l.keep, l.repeat)
	}
	for name, a := range l.accelerators {
		if a.InstanceType == "" || a.Resource == "" {
			wrong.add("accelerators.%s: set instanceType and resource", name)
		}
		for field, text := range map[string]string{"cpu": a.CPU, "memory": a.Memory} {
			if _, err := resource.ParseQuantity(text); err != nil {
				wrong.add("accelerators.%s.%s: %q is not a quantity; use one such as 12 or 128Gi", name, field, text)
			}
		}
	}
	if len(file.Steps) == 0 {
		wrong.add("steps: list at least one")
	}
	seen := map[string]bool{}
	for i, f := range file.Steps {
		field := fmt.Sprintf("step %d (%s)", i+1, cmp.Or(f.Name, "without a name"))
		s := step{
			at: wrong.duration(field+": at", f.At, 0), team: f.Team, name: f.Name, class: f.Class, of: f.Of, runs: wrong.duration(field+": runs", f.Runs, time.Second),
			each: wrong.count(field+": each", f.Each), pods: wrong.count(field+": pods", f.Pods),
		}
		if s.at >= l.repeat {
			wrong.add("%s: at %s is after the start of the next round; repeat is %s", field, f.At, file.Repeat)
		}
		for of, name := range map[string]string{"team": s.team, "name": s.name} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longestName {
				wrong.add("%s: %s %q: use at most %d lower-case letters, digits and hyphens", field, of, name, longestName)
			}
		}
		if job := s.team + "/" + s.name; seen[job] {
			wrong.add("%s: team %s already has a step of this name", field, s.team)
		} else {
			seen[job] = true
		}
		if _, known := l.accelerators[s.of]; !known {
			wrong.add("%s: of %q: use the name of an accelerator above", field, s.of)
		}
		l.steps = append(l.steps, s)
	}
	slices.SortStableFunc(l.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	// Maps have no order, and the same file has to give the same message.
	slices.SortStableFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, errors.Join(wrong...)
}
