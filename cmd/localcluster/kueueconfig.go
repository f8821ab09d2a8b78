package main

import (
	_ "embed"
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"
)

//go:embed kueue-config.yaml
var kueueDefaults string

// kueuePlace is what the process needs to know about this machine and what
// therefore does not belong in the ConfigMap.
type kueuePlace struct {
	health, metrics, webhook, visibility int // ports
	certDir                              string
	noVisibility                         bool // it is switched off, or /visibility cannot be used by this user
}

// kueueSettings is what the supervisor itself reads from the configuration.
type kueueSettings struct {
	file       []byte // what the process reads
	gates      string // its argument --feature-gates; empty when the gates are in the file
	frameworks []string
}

// overlay turns the ConfigMap's text and the gates among the Deployment's
// arguments into what the process on this machine is given.
func (p kueuePlace) overlay(text, gates string) (kueueSettings, error) {
	var cfg map[string]any
	if err := yaml.Unmarshal([]byte(text), &cfg); err != nil {
		return kueueSettings{}, fmt.Errorf("Kueue's configuration is not YAML: %w", err)
	}
	if cfg == nil {
		return kueueSettings{}, fmt.Errorf("Kueue's configuration is empty")
	}
	for _, set := range []struct {
		section string
		values  map[string]any
	}{
		{"health", map[string]any{"healthProbeBindAddress": loopback(p.health)}},
		{"metrics", map[string]any{"bindAddress": loopback(p.metrics)}},
		{"webhook", map[string]any{"host": "127.0.0.1", "port": p.webhook, "certDir": p.certDir}},
		{"leaderElection", map[string]any{"leaderElect": false}},
		{"internalCertManagement", map[string]any{"enable": true}},
	} {
		if err := setIn(cfg, set.section, set.values); err != nil {
			return kueueSettings{}, err
		}
	}
	if !p.noVisibility { // and an older Kueue does not know the section
		if err := setIn(cfg, "visibilityServer", map[string]any{"bindAddress": "127.0.0.1", "bindPort": p.visibility}); err != nil {
			return kueueSettings{}, err
		}
	}
	cfg["namespace"] = kueueNamespace
	switch {
	case p.noVisibility && gates != "": // there, since Kueue refuses gates in both places
		gates += ",VisibilityOnDemand=false"
	case p.noVisibility:
		if err := setIn(cfg, "featureGates", map[string]any{"VisibilityOnDemand": false}); err != nil {
			return kueueSettings{}, err
		}
	}
	file, err := yaml.Marshal(cfg)
	if err != nil {
		return kueueSettings{}, fmt.Errorf("write Kueue's configuration: %w", err)
	}
	return kueueSettings{file: file, gates: gates, frameworks: frameworksOf(cfg)}, nil
}

// noVisibility tells whether a configuration leaves the visibility API out.
func noVisibility(config []byte) bool {
	var c struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if yaml.Unmarshal(config, &c) != nil {
		return false // Kueue says what is wrong with it
	}
	on, set := c.FeatureGates["VisibilityOnDemand"]
	return set && !on
}

// setIn sets keys of one section and leaves its others alone.
func setIn(cfg map[string]any, section string, values map[string]any) error {
	current, ok := cfg[section].(map[string]any)
	if !ok {
		if cfg[section] != nil {
			return fmt.Errorf("Kueue's configuration: %s is %s, not a mapping", section, strconv.Quote(fmt.Sprint(cfg[section])))
		}
		current = map[string]any{}
		cfg[section] = current
	}
	for k, v := range values {
		current[k] = v
	}
	return nil
}

// frameworksOf lists the kinds of jobs that Kueue is to manage; batch/job is
// its own default.
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
	return names
}
