package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make oldest runs the oldest Kubernetes that the chart accepts.
func TestOldestKubernetesIsThatOfTheChart(t *testing.T) {
	mod, err := os.ReadFile("oldest/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := os.ReadFile("../../deploy/chart/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	oldest := regexp.MustCompile(`(?m)^kubeVersion: ">=(1\.\d+)\.0-0"$`).FindSubmatch(chart)
	if oldest == nil {
		t.Fatal("Chart.yaml has no kubeVersion of that form")
	}
	flags, err := linkFlags(string(mod))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(flags, ".gitVersion=v"+string(oldest[1])+".") {
		t.Errorf("the chart accepts %s, and the module has %s", oldest[1], flags)
	}
	for _, name := range kubernetesServers {
		i := slices.IndexFunc(binaries, func(b tool) bool { return b.name == name })
		if i < 0 || !strings.Contains(string(mod), "\t"+binaries[i].pkg+"\n") {
			t.Errorf("%s is not a tool of the module", name)
		}
	}
}
