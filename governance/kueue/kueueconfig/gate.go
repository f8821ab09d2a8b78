package kueueconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gateName is the feature gate that disables waiting for pods, from Kueue 0.19
// on. Without it, an absent section means to wait for 30 minutes.
const gateName = "DisableWaitForPodsReady"

// arguments are the arguments of Kueue's container.
type arguments struct {
	list        []string
	gatesIndex  int    // of the argument with the gates; -1 if the configuration has them
	gatesPrefix string // of that argument, before the gates
}

// parse returns the configuration and the arguments of Kueue, to read and edit them.
func parse(seen Current) (*document, *arguments, error) {
	d, err := read(seen.Text)
	if err != nil {
		return nil, nil, err
	}
	a, err := argsOf(seen.Args, d)
	return d, a, err
}

// argsOf finds the gates in the arguments. Kueue reads gates from its arguments
// or its configuration, and does not start with both.
func argsOf(list []string, d *document) (*arguments, error) {
	a := &arguments{list: slices.Clone(list), gatesIndex: -1}
	for i, arg := range list {
		name, value, joined := strings.Cut(arg, "=")
		if name != "--feature-gates" && name != "-feature-gates" {
			continue
		}
		switch { // the last one wins
		case joined:
			a.gatesIndex, a.gatesPrefix = i, name+"="
		case i+1 < len(list):
			a.gatesIndex, a.gatesPrefix, value = i+1, "", list[i+1]
		}
		if value == "" {
			a.gatesIndex = -1
		}
	}
	if a.gatesIndex >= 0 && d.section(featureGates) != nil {
		return nil, invalid(nil, "Kueue's feature gates are set both in its configuration and in the argument --feature-gates of its Deployment, so Kueue does not start. Remove one of the two.")
	}
	return a, nil
}

// setWaitForPodsReadyGate sets the gate if gang scheduling needs it.
func setWaitForPodsReadyGate(d *document, a *arguments, v version, gangs bool) {
	value, present := d.gate(a, gateName)
	sentence := "The gate " + gateName + " is switched "
	switch {
	case present && v.known() && !v.hasGate():
		d.writeGate(a, gateName, nil, fmt.Sprintf("The gate %s is removed: Kueue %s does not have it.", gateName, v.text))
	case gangs && present && value != "false":
		d.writeGate(a, gateName, false, sentence+"off, so that Kueue waits for pods.")
	case gangs, present && value == "true":
	case d.hasEnable && !present: // off by default in v1beta1
	case present:
		d.writeGate(a, gateName, true, sentence+"on, so that Kueue does not wait for pods.")
	case v.hasGate():
		d.writeGate(a, gateName, true, sentence+"on: without it Kueue "+v.text+" waits for pods for 30 minutes.")
	case !v.known():
		d.unsupported = append(d.unsupported, "The gate "+gateName+" is not added, because the image does not show Kueue's version. From Kueue 0.19, gang scheduling stays on with a timeout of 30 minutes until the gate is set to true.")
	case v.minor > 20:
		d.unsupported = append(d.unsupported, "The gate "+gateName+" is not added, because Kueue "+v.text+" may no longer have it. See Kueue's release notes for how to switch off waiting for pods.")
	}
}

// gate returns the value of a gate: "true", "false", or another text that an
// admin wrote.
func (d *document) gate(a *arguments, gate string) (value string, present bool) {
	if a.gatesIndex < 0 {
		n := child(d.section(featureGates), gate)
		if n == nil {
			return "", false
		}
		return strconv.FormatBool(isTrue(n)), true
	}
	for pair := range strings.SplitSeq(strings.TrimPrefix(a.list[a.gatesIndex], a.gatesPrefix), ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.TrimSpace(name) != gate {
			continue
		}
		value, present = text, true
		if b, err := strconv.ParseBool(strings.TrimSpace(text)); err == nil {
			value = strconv.FormatBool(b)
		}
	}
	return value, present
}

// writeGate sets a gate where the gates are configured; nil removes it.
func (d *document) writeGate(a *arguments, gate string, value any, sentence string) {
	if a.gatesIndex < 0 {
		if n := d.section(featureGates); value == nil && len(n.Content) == 2 {
			d.remove(featureGates, sentence)
			return
		}
		d.set(featureGates, map[string]any{gate: value}, sentence)
		return
	}
	d.changes = append(d.changes, sentence)
	var pairs []string
	for pair := range strings.SplitSeq(strings.TrimPrefix(a.list[a.gatesIndex], a.gatesPrefix), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.TrimSpace(name) != gate {
			pairs = append(pairs, pair)
		}
	}
	if value != nil {
		pairs = append(pairs, fmt.Sprintf("%s=%t", gate, value))
	}
	if len(pairs) > 0 {
		a.list[a.gatesIndex] = a.gatesPrefix + strings.Join(pairs, ",")
		return
	}
	from := a.gatesIndex
	if a.gatesPrefix == "" { // the flag is the argument before
		from--
	}
	a.list = slices.Delete(a.list, from, a.gatesIndex+1)
}
