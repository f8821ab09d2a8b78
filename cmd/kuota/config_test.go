package main

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	env := map[string]string{"KUOTA_LISTEN": "127.0.0.1:9000", "KUOTA_COHORT": "pool", "KUOTA_KUBE_QPS": "50"}
	c, err := parseConfig([]string{"--cohort", "flag-wins"}, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if c.listen != "127.0.0.1:9000" || c.naming.Cohort != "flag-wins" || c.qps != 50 || c.naming.Prefix != "hyperpod-ns-" {
		t.Errorf("got %+v", c)
	}
}

// Every wrong value is told at once.
func TestConfigTellsAllThatIsWrong(t *testing.T) {
	env := map[string]string{"KUOTA_KUBE_BURST": "many"}
	_, err := parseConfig([]string{"--name-prefix", "Bad_", "--log-level", "loud", "--cohort", "A B", "--kube-qps", "-1"}, func(name string) string { return env[name] })
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"KUOTA_KUBE_BURST", "name-prefix", "log-level", "cohort", "kube-qps"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in: %v", want, err)
		}
	}
}
