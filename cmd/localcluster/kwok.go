package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// kwokComponent simulates the kubelets of all nodes.
func kwokComponent(l layout, bin string, ports map[string]int) (*component, error) {
	stages, err := filepath.Glob(filepath.Join(kwokStages(bin), "*.yaml"))
	if err != nil || len(stages) == 0 {
		return nil, fmt.Errorf("no KWOK stages in %s; run: localcluster build --bin %s", kwokStages(bin), bin)
	}
	slices.Sort(stages)
	args := []string{
		"--kubeconfig=" + l.componentConfig(kwokName),
		"--manage-all-nodes=true",
		"--server-address=" + loopback(ports["kwok"]),
		"--node-lease-duration-seconds=40",
	}
	for _, s := range stages {
		args = append(args, "--config="+s)
	}
	return &component{
		name:  kwokName,
		spec:  spec{path: filepath.Join(bin, kwokName), args: args},
		ready: httpOK(healthClient, "http://"+loopback(ports["kwok"])+"/healthz"),
		grace: 2 * time.Second,
		ports: []namedPort{{"http", ports["kwok"]}},
	}, nil
}
