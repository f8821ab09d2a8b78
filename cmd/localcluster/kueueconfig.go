package main

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed kueue-config.yaml
var kueueDefaults string

// kueueLocal is the part of Kueue's configuration that depends on this machine,
// and that the ConfigMap therefore does not have.
type kueueLocal struct {
	ports
	certDir         string // of the webhooks' certificate
	noVisibility    bool   // it is off, or this user cannot write to visibilityDir
	ownCertificates bool   // this user cannot write to metricsDir
}

// kueueSettings is how the process is started.
type kueueSettings struct {
	file       []byte // its configuration file
	gates      string // its argument --feature-gates; empty if the file has the gates
	frameworks []string
}

// overlay combines the ConfigMap's text and the Deployment's feature gates with
// the settings of this machine.
func (l kueueLocal) overlay(text, gates string) (kueueSettings, error) {
	var cfg map[string]any
	if err := yaml.Unmarshal([]byte(text), &cfg); err != nil {
		return kueueSettings{}, fmt.Errorf("Kueue's configuration is not YAML: %w", err)
	}
	if cfg == nil {
		return kueueSettings{}, errors.New("Kueue's configuration is empty")
	}
	cfg["namespace"] = kueueNamespace
	sections := map[string]map[string]any{
		"health":                 {"healthProbeBindAddress": loopback(l.kueueHealth)},
		"metrics":                {"bindAddress": loopback(l.kueueMetrics)},
		"webhook":                {"host": "127.0.0.1", "port": l.kueueWebhook, "certDir": l.certDir},
		"leaderElection":         {"leaderElect": false},
		"internalCertManagement": {"enable": l.ownCertificates},
	}
	switch {
	case !l.noVisibility: // an older Kueue does not accept the section
		sections["visibilityServer"] = map[string]any{"bindAddress": "127.0.0.1", "bindPort": l.kueueVisibility}
	case gates != "": // Kueue refuses gates in both places
		gates += ",VisibilityOnDemand=false"
	default:
		sections["featureGates"] = map[string]any{"VisibilityOnDemand": false}
	}
	if err := setSections(cfg, sections); err != nil {
		return kueueSettings{}, fmt.Errorf("Kueue's configuration: %w", err)
	}
	file, err := yaml.Marshal(cfg)
	if err != nil {
		return kueueSettings{}, fmt.Errorf("write Kueue's configuration: %w", err)
	}
	return kueueSettings{file: file, gates: gates, frameworks: frameworksOf(cfg)}, nil
}

// setSections sets values in the sections of a configuration, and leaves its other
// values unchanged.
func setSections(cfg map[string]any, sections map[string]map[string]any) error {
	for name, values := range sections {
		section, ok := cfg[name].(map[string]any)
		if !ok && cfg[name] != nil {
			return fmt.Errorf("%s is %s, not a mapping", name, strconv.Quote(fmt.Sprint(cfg[name])))
		}
		if section == nil {
			section = map[string]any{}
		}
		maps.Copy(section, values)
		cfg[name] = section
	}
	return nil
}

// visibilityDisabled reports whether a configuration turns the visibility API off.
func visibilityDisabled(config []byte) bool {
	var c struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	_ = yaml.Unmarshal(config, &c) // Kueue reports what is wrong with it
	on, set := c.FeatureGates["VisibilityOnDemand"]
	return set && !on
}

// withFrameworks adds kinds of jobs to those that Kueue manages. It leaves the rest
// of the text unchanged, comments too.
func withFrameworks(text string, frameworks []string) (string, error) {
	const list = "\n  frameworks:\n"
	before, after, found := strings.Cut(text, list)
	if !found {
		return "", errors.New("Kueue's configuration has no list integrations.frameworks, to which kinds could be added")
	}
	var lines strings.Builder
	for _, f := range frameworks {
		fmt.Fprintf(&lines, "  - %s\n", f)
	}
	return before + list + lines.String() + after, nil
}

// frameworksOf returns the kinds of jobs that Kueue manages; its default is
// batch/job. As in Kueue 0.19, pods are among them if a listed kind consists of pods
// that Kueue admits.
func frameworksOf(cfg map[string]any) []string {
	section, _ := cfg["integrations"].(map[string]any)
	list, _ := section["frameworks"].([]any)
	if len(list) == 0 {
		return []string{"batch/job"}
	}
	var names []string
	for _, f := range list {
		names = append(names, fmt.Sprint(f))
	}
	ofPods := func(name string) bool {
		return name == "deployment" || name == "statefulset" || name == "leaderworkerset.x-k8s.io/leaderworkerset"
	}
	if slices.ContainsFunc(names, ofPods) && !slices.Contains(names, "pod") {
		names = append(names, "pod")
	}
	return names
}
