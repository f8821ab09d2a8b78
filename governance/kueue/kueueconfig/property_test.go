package kueueconfig_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kueue/apis/config/v1beta1"
	"sigs.k8s.io/kueue/apis/config/v1beta2"
)

// everyPolicy calls f for all combinations of what the configuration depends on.
func everyPolicy(f func(p *v1alpha1.ClusterPolicySpec)) {
	three, none := int32(3), int32(0)
	for bits := range 1 << 7 {
		on := func(bit int) bool { return bits&(1<<bit) != 0 }
		p := &v1alpha1.ClusterPolicySpec{IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare}}
		if on(0) {
			p.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
		}
		g := &p.GangScheduling
		g.Enabled, g.BlockAdmission = on(1), on(2)
		if on(3) {
			g.Timeout, g.RecoveryTimeout = &metav1.Duration{Duration: 90_000_000_000}, &metav1.Duration{}
		}
		if on(4) {
			g.Requeuing = v1alpha1.Requeuing{Timestamp: "Creation", BackoffLimitCount: &three, BackoffBaseSeconds: &none, BackoffMaxSeconds: &three}
		}
		if on(5) {
			g.Requeuing.BackoffLimitCount = &none
		}
		if on(6) {
			p.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{ResourceWeights: map[string]v1alpha1.ResourceWeight{"cpu": 1}}
		}
		f(p)
	}
}

var kueueScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1beta2.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// decode reads a configuration as Kueue 0.19 does: strictly, with its defaults.
func decode(t *testing.T, text string) v1beta2.Configuration {
	t.Helper()
	var c v1beta2.Configuration
	codecs := serializer.NewCodecFactory(kueueScheme, serializer.EnableStrict)
	if err := runtime.DecodeInto(codecs.UniversalDecoder(), []byte(text), &c); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func TestForPolicyMatchesEveryPolicy(t *testing.T) {
	const gate = "DisableWaitForPodsReady"
	for _, name := range []string{"release", "gang", "old", "oneline", "usage"} {
		for _, args := range [][]string{nil, {"--feature-gates=PriorityBoost=true"}, {"--feature-gates", gate + "=true"}} {
			if (name == "gang" || name == "usage") && args != nil { // these files have gates
				continue
			}
			seen := seenOf(t, name, current, args...)
			before := decode(t, seen.Text)
			everyPolicy(func(p *v1alpha1.ClusterPolicySpec) {
				got, err := kueueconfig.ForPolicy(seen, p)
				if err != nil {
					t.Fatal(err)
				}
				where := fmt.Sprintf("%s %v, %+v:\n%s", name, args, p, got.Text)
				c := decode(t, got.Text)
				disabled := c.FeatureGates[gate] || strings.Contains(strings.Join(got.Args, " "), gate+"=true")
				if fair := p.IdleCompute.Strategy == v1alpha1.IdleFairShare; (c.FairSharing != nil) != fair {
					t.Errorf("fair sharing is not %t with %s", fair, where)
				}
				if waits := !disabled && c.WaitForPodsReady != nil; waits != p.GangScheduling.Enabled {
					t.Errorf("gang scheduling is %t with %s", waits, where)
				}
				if w, g := c.WaitForPodsReady, p.GangScheduling; g.Enabled && g.Timeout != nil {
					if w.Timeout != *g.Timeout || *w.RecoveryTimeout != *g.RecoveryTimeout || *w.BlockAdmission != g.BlockAdmission || !cmp.Equal(w.RequeuingStrategy.BackoffLimitCount, g.Requeuing.BackoffLimitCount) {
						t.Errorf("timeouts differ from the policy with %s", where)
					}
				}
				if a := p.AdmissionFairSharing; a != nil {
					if u := c.AdmissionFairSharing; u == nil || u.UsageHalfLifeTime.Hours() != 24 || len(u.ResourceWeights) != len(kueueconfig.ResourceWeights(a)) || u.ResourceWeights["nvidia.com/gpu"] != 1 || u.ResourceWeights["cpu"] != 1 || u.ResourceWeights["memory"] != 0 {
						t.Errorf("usage is counted as %+v with %s", u, where)
					}
					c.AdmissionFairSharing = before.AdmissionFairSharing
				}
				after := c
				after.FairSharing, after.WaitForPodsReady, after.FeatureGates = before.FairSharing, before.WaitForPodsReady, before.FeatureGates
				if diff := cmp.Diff(asJSON(t, before), asJSON(t, after)); diff != "" {
					t.Errorf("other settings changed with %s\n%s", where, diff)
				}
				again, err := kueueconfig.ForPolicy(kueueconfig.Current{Text: got.Text, Args: got.Args, Image: current}, p)
				if err != nil || again.Text != got.Text || !cmp.Equal(again.Args, got.Args) || again.Patch != "" || len(again.Changes) > 0 {
					t.Errorf("applied again: error %v, changes %v, with %s", err, again.Changes, where)
				}
			})
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Kueue's own binary, if it is built, accepts the result and fails only because there
// is no cluster.
func TestKueueAcceptsConfiguration(t *testing.T) {
	kueue, err := filepath.Abs("../../../.local/bin/kueue")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kueue); err != nil {
		t.Skip("Kueue is not built: run make cluster")
	}
	for i, c := range []struct{ seen, policy string }{
		{"release", both}, {"release", neither}, {"gang", gangs}, {"gang", neither}, {"old", both}, {"old", neither}, {"oneline", gangs},
	} {
		t.Run(strconv.Itoa(i)+c.seen, func(t *testing.T) {
			got, err := kueueconfig.ForPolicy(seenOf(t, c.seen, current), policyOf(t, c.policy))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(got.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := exec.Command(kueue, "--config="+file, "--kubeconfig=/nonexistent/kubeconfig").CombinedOutput()
			if !strings.Contains(string(out), "Initializing") || !strings.Contains(string(out), "/nonexistent/kubeconfig") {
				t.Errorf("Kueue prints:\n%s\nfor:\n%s", out, got.Text)
			}
		})
	}
}
