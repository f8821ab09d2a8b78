package kueueconfig_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	current = "registry.example/kueue:v0.19.2"
	older   = "registry.example/kueue:v0.18.1"
	branch  = "registry.example/kueue:main"
)

// Policies of the tests, by what they enable.
const (
	neither = `idleCompute: {strategy: FirstComeFirstServe}`
	fair    = `idleCompute: {strategy: FairShare}`
	gangs   = `{idleCompute: {strategy: FirstComeFirstServe}, gangScheduling: {enabled: true, timeout: 5m, recoveryTimeout: 0s, requeuing: {timestamp: Creation, backoffLimitCount: 3, backoffBaseSeconds: 30, backoffMaxSeconds: 600}}}`
	both    = `{idleCompute: {strategy: FairShare}, gangScheduling: {enabled: true, blockAdmission: true}}`
	usages  = `{idleCompute: {strategy: FirstComeFirstServe}, admissionFairSharing: {usageHalfLifeTime: 12h, resourceWeights: {cpu: 2, nvidia.com/gpu: 100}}}`
)

func policyOf(t testing.TB, text string) *v1alpha1.ClusterPolicySpec {
	t.Helper()
	var p v1alpha1.ClusterPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func seenOf(t testing.TB, name, image string, args ...string) kueueconfig.Current {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return kueueconfig.Current{Text: string(text), Args: append([]string{"--config=/controller_manager_config.yaml"}, args...), Image: image}
}

// Each case has a golden file testdata/NAME.golden with the sentences, the patch, the
// arguments and the configuration.
func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		seen, image, policy string
		args                []string
	}{
		"a release gets fair sharing":                     {seen: "release", image: current, policy: fair},
		"a release gets both":                             {seen: "release", image: current, policy: both},
		"an older release needs no gate":                  {seen: "release", image: older, policy: neither},
		"a branch gets no gate":                           {seen: "release", image: branch, policy: neither},
		"gates among the arguments stay":                  {seen: "release", image: current, policy: neither, args: []string{"--feature-gates=PriorityBoost=true", "--zap-log-level=2"}},
		"the timeouts of a policy replace others":         {seen: "gang", image: current, policy: gangs},
		"a list and comments of an admin stay":            {seen: "gang", image: current, policy: both},
		"both are switched off":                           {seen: "gang", image: current, policy: neither},
		"v1beta1 is switched off by its keys":             {seen: "old", image: current, policy: neither},
		"v1beta1 is switched on by its keys":              {seen: "old", image: current, policy: both},
		"the usage of shares is counted":                  {seen: "release", image: current, policy: usages},
		"usage is counted by the weights of the policy":   {seen: "usage", image: current, policy: usages},
		"a configuration on one line is written in lines": {seen: "oneline", image: current, policy: both},
	} {
		t.Run(name, func(t *testing.T) {
			seen := seenOf(t, c.seen, c.image, c.args...)
			got, err := kueueconfig.ForPolicy(seen, policyOf(t, c.policy))
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("version %q\n%s\n\n%s\n---\n%s\n---\n%s", got.Version, strings.Join(slices.Concat(got.Changes, prefixed("Cannot: ", got.Unsupported)), "\n"), got.Patch, strings.Join(got.Args, "\n"), got.Text)
			golden := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got), -update rewrites the file:\n%s", diff)
			}
			if got.ConfigChanged != (got.Text != seen.Text) || got.ArgsChanged != !cmp.Equal(got.Args, seen.Args) || (got.Patch != "") != (got.ConfigChanged || got.ArgsChanged) {
				t.Errorf("ConfigChanged is %t, ArgsChanged is %t", got.ConfigChanged, got.ArgsChanged)
			}
		})
	}
}

func prefixed(prefix string, sentences []string) []string {
	var all []string
	for _, sentence := range sentences {
		all = append(all, prefix+sentence)
	}
	return all
}

// Unsupported does not depend on Changes, and the patch has the restart command of
// this installation.
func TestUnsupportedIsAlwaysReported(t *testing.T) {
	seen := seenOf(t, "release", branch)
	seen.RestartCommand = "restart this Kueue"
	first, err := kueueconfig.ForPolicy(seen, policyOf(t, fair))
	if err != nil || !first.ConfigChanged || len(first.Unsupported) != 1 {
		t.Fatalf("unsupported is %q (%v), want one sentence", first.Unsupported, err)
	}
	if !strings.Contains(first.Patch, "# restart this Kueue\n") || strings.Contains(first.Patch, "kueue-system rollout") {
		t.Errorf("got patch\n%s", first.Patch)
	}
	seen.Text = first.Text
	then, err := kueueconfig.ForPolicy(seen, policyOf(t, fair))
	if err != nil || then.ConfigChanged || len(then.Changes) > 0 || !cmp.Equal(then.Unsupported, first.Unsupported) {
		t.Errorf("a second time: changes %q, unsupported %q (%v)", then.Changes, then.Unsupported, err)
	}
}

func TestNoPolicyChangesNothing(t *testing.T) {
	seen := kueueconfig.Current{Text: "not: [even YAML", Image: current}
	got, err := kueueconfig.ForPolicy(seen, nil)
	if err != nil || got.Text != seen.Text || got.ConfigChanged || got.ArgsChanged || len(got.Changes) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
