package kueueconfig_test

import (
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"

func TestForPolicyRejects(t *testing.T) {
	for name, c := range map[string]struct{ text, arg, policy, want string }{
		"no YAML":                {text: "a: [", want: "not YAML"},
		"a key twice":            {text: head + "kind: Configuration\n", want: "not YAML that Kueue accepts"},
		"an empty text":          {text: "", want: "is empty"},
		"a comment":              {text: "# nothing\n", want: "is empty"},
		"a list":                 {text: "- a\n", want: "not a mapping"},
		"another kind":           {text: "apiVersion: v1\nkind: Pod\n", want: `a "Pod" of "v1"`},
		"a later version":        {text: strings.Replace(head, "v1beta2", "v1", 1), want: "Kuota supports"},
		"two documents":          {text: head + "---\n" + head, want: "more than one document"},
		"a section as a string":  {text: head + "fairSharing: yes please\n", want: "fairSharing"},
		"a section by reference": {text: head + "metrics: &m {}\nwaitForPodsReady: *m\n", want: "waitForPodsReady"},
		"a section referred to":  {text: head + "fairSharing: &f {preemptionStrategies: [LessThanInitialShare]}\nother: *f\n", want: "by hand"},
		"too many lines":         {text: head + strings.Repeat("#\n", 3000), want: "3002 lines"},
		"gates in two places":    {text: head + "featureGates: {}\n", arg: "--feature-gates=PriorityBoost=true", want: "both"},
		"a timeout of zero":      {text: head, policy: "gangScheduling: {enabled: true, timeout: 0s}", want: "spec.gangScheduling.timeout"},
		"a negative timeout":     {text: head, policy: "gangScheduling: {enabled: true, recoveryTimeout: -1s}", want: "spec.gangScheduling.recoveryTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := kueueconfig.Current{Text: c.text, Args: []string{c.arg}, Image: current}
			if c.policy == "" {
				c.policy = neither
			}
			got, err := kueueconfig.ForPolicy(seen, policyOf(t, c.policy))
			if err == nil || !strings.Contains(err.Error(), c.want) || governance.KindOf(err) != governance.Invalid {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
			if got.Text != seen.Text || got.ConfigChanged || got.ArgsChanged {
				t.Errorf("changed although it failed: %+v", got)
			}
		})
	}
}

func TestVersionFromImageTag(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example/kueue/kueue:v0.19.2":    "v0.19.2",
		"registry.example:5000/kueue:v0.19.2-foo": "v0.19.2-foo",
		"kueue:0.18.0": "v0.18.0",
		"registry.example/kueue:v0.19.2@sha256:abcd": "v0.19.2",
		"registry.example/kueue@sha256:abcd":         "",
		"registry.example/kueue:main":                "",
		"registry.example/kueue:v0.19":               "",
		"registry.example:5000/kueue":                "",
		"":                                           "",
	} {
		got, err := kueueconfig.ForPolicy(kueueconfig.Current{Text: head, Image: image}, policyOf(t, neither))
		if err != nil || got.Version != want {
			t.Errorf("%q is version %q, want %q (%v)", image, got.Version, want, err)
		}
	}
}

// The gate is added if the version has it, and changed where it is configured.
func TestWaitForPodsReadyGate(t *testing.T) {
	const gate = "DisableWaitForPodsReady"
	off := head + "featureGates:\n  " + gate + ": false\n"
	for name, c := range map[string]struct {
		image, text, policy string
		args                []string
		wantText            string
		wantArgs            []string
		want                string
	}{
		"Kueue 0.19 gets it":                        {image: current, text: head, policy: neither, wantText: head + "featureGates:\n  " + gate + ": true\n", want: "30 minutes"},
		"Kueue 0.21 may not have it":                {image: "kueue:v0.21.0", text: head, policy: neither, wantText: head, want: "may no longer have it"},
		"an unknown version does not get it":        {image: branch, text: head, policy: neither, wantText: head, want: "does not show"},
		"an unknown version has it already":         {image: branch, text: off, policy: neither, wantText: strings.Replace(off, "false", "true", 1), want: "switched on"},
		"an unknown version has it, and needs it":   {image: branch, text: strings.Replace(off, "false", "true", 1), policy: neither, wantText: strings.Replace(off, "false", "true", 1)},
		"an older version does not have it":         {image: older, text: off, policy: neither, wantText: head, want: "does not have it"},
		"an argument is changed":                    {image: current, text: head, policy: neither, args: []string{"--feature-gates=" + gate + "=false,A=true"}, wantText: head, wantArgs: []string{"--feature-gates=A=true," + gate + "=true"}, want: "switched on"},
		"an argument in two parts is changed":       {image: current, text: head, policy: neither, args: []string{"--feature-gates", "A=true"}, wantText: head, wantArgs: []string{"--feature-gates", "A=true," + gate + "=true"}, want: "30 minutes"},
		"an argument in two parts is removed":       {image: older, text: head, policy: neither, args: []string{"-a", "--feature-gates", gate + "=false"}, wantText: head, wantArgs: []string{"-a"}, want: "is removed"},
		"an empty argument is not used":             {image: current, text: head, policy: neither, args: []string{"--feature-gates="}, wantText: head + "featureGates:\n  " + gate + ": true\n", wantArgs: []string{"--feature-gates="}, want: "30 minutes"},
		"a null section is not used":                {image: current, text: head + "featureGates:\nnamespace: n\n", policy: neither, wantText: head + "featureGates:\n  " + gate + ": true\nnamespace: n\n", want: "30 minutes"},
		"a missing last newline is added":           {image: current, text: head + "namespace: n", policy: neither, wantText: head + "namespace: n\nfeatureGates:\n  " + gate + ": true\n", want: "30 minutes"},
		"the end marker of the document stays last": {image: current, text: "---\n" + head + "...\n", policy: neither, wantText: "---\n" + head + "featureGates:\n  " + gate + ": true\n...\n", want: "30 minutes"},
		"CRLF line ends stay":                       {image: current, text: strings.ReplaceAll(head, "\n", "\r\n"), policy: neither, wantText: strings.ReplaceAll(head+"featureGates:\n  "+gate+": true\n", "\n", "\r\n"), want: "30 minutes"},
		"an indented document stays indented":       {image: current, text: "  apiVersion: config.kueue.x-k8s.io/v1beta2\n  kind: Configuration\n", policy: neither, wantText: "  apiVersion: config.kueue.x-k8s.io/v1beta2\n  kind: Configuration\n  featureGates:\n    " + gate + ": true\n", want: "30 minutes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kueueconfig.ForPolicy(kueueconfig.Current{Text: c.text, Args: c.args, Image: c.image}, policyOf(t, c.policy))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.wantText, got.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantArgs, got.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if unsupported := strings.Contains(c.want, "may no longer have it") || strings.Contains(c.want, "does not show"); unsupported != (len(got.Unsupported) > 0) {
				t.Errorf("unsupported is %q", got.Unsupported)
			}
			if got := strings.Join(slices.Concat(got.Changes, got.Unsupported), " "); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got sentences %q, want %q", got, c.want)
			}
		})
	}
}
