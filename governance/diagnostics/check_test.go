package diagnostics

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueueconfig"
	"kuota.dev/kuota/governance/reconcile"
)

const head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"

// whole is a cluster in which nothing is missing.
func whole() Observation {
	return Observation{
		Server: "v1.36.3", Missing: cluster.MissingKinds{Discovered: true}, Install: reconcile.DefaultKueueInstall,
		Kueue: reconcile.KueueState{Current: kueueconfig.Current{
			Image: "registry.k8s.io/kueue/kueue:v0.19.2",
			Text:  head + "integrations: {frameworks: [batch/job, pod]}\nfeatureGates: {UnadmittedWorkloadsObservability: true, UnadmittedWorkloadsExplicitStatus: true, SchedulingEquivalenceHashing: false, DisableWaitForPodsReady: true}\n",
		}},
		Visibility: true, CanWrite: Yes, ChangedBy: PolicyInstalled,
	}
}

var allKinds = []string{"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "WorkloadPriorityClass"}

func TestGaps(t *testing.T) {
	fair := &v1alpha1.ClusterPolicySpec{IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare}}
	for name, c := range map[string]struct {
		change func(*Observation)
		want   string   // ids
		patch  []string // in the first gap's
		says   []string // its title and costs
	}{
		"nothing is missing": {func(*Observation) {}, "", nil, nil},
		"Kueue absent": {func(s *Observation) { s.Missing.Kueue, s.KueueRead, s.Visibility = allKinds, ReadNotFound, false }, "kueue-absent",
			[]string{"kueue/releases/download/v0.19.2/manifests.yaml"}, []string{"not installed", "No quota is enforced"}},
		"Kueue absent, and with it the rights in its namespace": {func(s *Observation) { s.Missing.Kueue, s.KueueRead = allKinds, ReadForbidden }, "kueue-absent", nil, nil},
		"a kind missing": {func(s *Observation) {
			s.Missing.Kueue = []string{"Cohort"}
			s.Kueue.Image = "x:v0.18.1"
			s.Kueue.Text = strings.ReplaceAll(s.Kueue.Text, "Unadmitted", "No")
		}, "kueue-kinds reasons",
			[]string{"download/v0.18.1/"}, []string{"Cohort"}},
		"served in an older version": {func(s *Observation) {
			s.Missing.Kueue, s.Missing.KueueVersions, s.Kueue.Image = allKinds, []string{"v1beta1"}, "x:v0.14.0"
			s.Kueue.Text = strings.ReplaceAll(s.Kueue.Text, "Unadmitted", "No")
		}, "kueue-older reasons",
			[]string{"manifests.yaml"}, []string{"v1beta1 only", "serves from 0.15", "0.16.1 and 0.19.2"}},
		"older than 0.16, and serves v1beta2": {func(s *Observation) { s.Kueue.Image = "x:v0.15.2" }, "kueue-older reasons", []string{"manifests.yaml"}, []string{"v0.15.2", "older than 0.16", "tested with Kueue 0.16.1 and 0.19.2"}},
		"served in a newer version": {func(s *Observation) {
			s.Missing.Kueue, s.Missing.KueueVersions, s.Kueue.Image = allKinds, []string{"v1"}, "x:v0.20.0"
		}, "kueue-newer", []string{"Upgrade Kuota"}, []string{"v1 only"}},
		"an unknown version": {func(s *Observation) { s.Kueue.Image = "example.com:5000/mine:main" }, "kueue-version",
			[]string{"set image deployment kueue-controller-manager manager=example.com:5000/mine:<version that runs>\n"}, []string{"example.com:5000/mine:main"}},
		"an image by its digest": {func(s *Observation) { s.Kueue.Image = "example.com:5000/mine@sha256:ab" }, "kueue-version",
			[]string{" manager=example.com:5000/mine:<version that runs>\n"}, nil},
		"a kind missing of an unknown version": {func(s *Observation) { s.Missing.Kueue, s.Kueue.Image = []string{"Cohort"}, "x:main" }, "kueue-kinds kueue-version",
			[]string{"the manifests of that version"}, nil},
		"a kind missing where the configuration cannot be read": {func(s *Observation) {
			s.Missing.Kueue, s.KueueRead, s.Kueue = []string{"Cohort"}, ReadForbidden, reconcile.KueueState{}
		}, "kueue-kinds kueue-forbidden", []string{"the manifests of that version"}, nil},
		"a kind missing of an older version": {func(s *Observation) {
			s.Missing.Kueue, s.Kueue.Image = []string{"Cohort"}, "x:v0.15.2"
			s.Kueue.Text = strings.ReplaceAll(s.Kueue.Text, "Unadmitted", "No")
		}, "kueue-kinds kueue-older reasons", []string{"download/v0.15.2/"}, nil},
		"without the pod integration": {func(s *Observation) { s.Kueue.Text = strings.Replace(s.Kueue.Text, ", pod", "", 1) }, "pods",
			[]string{"+integrations: {frameworks: [batch/job, pod]}", "rollout restart"}, []string{"Deployments"}},
		"without gates": {func(s *Observation) {
			s.Kueue.Text = strings.Replace(s.Kueue.Text, "UnadmittedWorkloadsObservability: true, UnadmittedWorkloadsExplicitStatus: true, ", "", 1)
		}, "reasons",
			[]string{"UnadmittedWorkloadsObservability: true", "UnadmittedWorkloadsExplicitStatus: true"}, []string{"exact reasons"}},
		"without gates in a version that has none": {func(s *Observation) {
			s.Kueue.Image, s.Kueue.Text = "x:v0.17.0", head+"integrations: {frameworks: [pod]}\n"
		}, "reasons", []string{"from 0.19"}, []string{"v0.17.0"}},
		"reasons hidden": {func(s *Observation) {
			s.Kueue.Text = strings.Replace(s.Kueue.Text, "SchedulingEquivalenceHashing: false, ", "", 1)
		}, "hashing", []string{"SchedulingEquivalenceHashing: false"}, nil},
		"gates among the arguments": {func(s *Observation) {
			s.Kueue.Text, s.Kueue.Args = head+"integrations: {frameworks: [pod]}\n", []string{"--feature-gates=SchedulingEquivalenceHashing=false,UnadmittedWorkloadsObservability=true"}
		}, "reasons", []string{"+- --feature-gates=SchedulingEquivalenceHashing=false,UnadmittedWorkloadsObservability=true,UnadmittedWorkloadsExplicitStatus=true"}, nil},
		"without visibility":                       {func(s *Observation) { s.Visibility = false }, "visibility", []string{"get apiservice"}, []string{"does not answer", "position of a task"}},
		"without visibility in an unknown version": {func(s *Observation) { s.Visibility, s.Kueue.Image = false, "x:main" }, "kueue-version visibility", nil, nil},
		"without visibility in an older version":   {func(s *Observation) { s.Visibility, s.Kueue.Image = false, "x:v0.15.2" }, "kueue-older reasons visibility", nil, nil},
		"visibility switched off": {func(s *Observation) {
			s.Visibility = false
			s.Kueue.Text = strings.Replace(s.Kueue.Text, "DisableWait", "VisibilityOnDemand: false, DisableWait", 1)
		}, "visibility", []string{"+featureGates", "VisibilityOnDemand: true"}, []string{"switched off"}},
		"fair sharing the other way, and the console is told not to": {func(s *Observation) { s.Policy, s.Install.Manage = fair, false }, "policy",
			[]string{"+fairSharing:"}, []string{"Fair sharing is switched on"}},
		"fair sharing the other way, and the console may not":      {func(s *Observation) { s.Policy, s.CanWrite = fair, No }, "policy permission", []string{"+fairSharing:"}, nil},
		"fair sharing the other way, which the console puts right": {func(s *Observation) { s.Policy = fair }, "", nil, nil},
		"somebody else governs the cluster": {func(s *Observation) { s.ReadOnly = "HyperPod's own task governance runs this cluster." }, "read-only",
			[]string{"kubectl get validatingadmissionpolicy hyperpod-task-governance-admission-policy\n", "\n--take-over\n"}, []string{"read-only", "HyperPod's own"}},
		"fair sharing the other way, and somebody else governs the cluster": {func(s *Observation) { s.Policy, s.ReadOnly = fair, "HyperPod does." }, "read-only policy", nil, nil},
		"Kueue absent, and somebody else governs the cluster": {func(s *Observation) {
			s.Missing.Kueue, s.KueueRead, s.ReadOnly = allKinds, ReadNotFound, "HyperPod does."
		}, "read-only kueue-absent", nil, nil},
		"without permission, and somebody else governs the cluster": {func(s *Observation) { s.CanWrite, s.ReadOnly = No, "HyperPod does." }, "read-only", nil, nil},
		"without permission":                      {func(s *Observation) { s.CanWrite = No }, "permission", []string{"console.yaml", "--manage-kueue=false"}, []string{"has no permission to change"}},
		"told not to, so no permission is needed": {func(s *Observation) { s.CanWrite, s.Install.Manage = No, false }, "", nil, nil},
		"configuration under another name":        {func(s *Observation) { s.KueueRead = ReadNotFound }, "kueue-not-found", []string{"--kueue-configmap="}, nil},
		"configuration not to be read":            {func(s *Observation) { s.KueueRead = ReadForbidden }, "kueue-forbidden", []string{"console.yaml"}, nil},
		"the API server did not say":              {func(s *Observation) { s.KueueRead = ReadFailed }, "kueue-unread", nil, nil},
		"configuration that is no YAML":           {func(s *Observation) { s.Kueue.Text = "a: [" }, "kueue-configuration", []string{"edit configmap"}, nil},
		"Kueue stopped":                           {func(s *Observation) { s.Kueue.ScaledToZero, s.Visibility = true, false }, "kueue-stopped", []string{"--replicas=1"}, nil},
		"Kueue stuck":                             {func(s *Observation) { s.Kueue.RolloutFailure = "progress deadline exceeded" }, "kueue-stuck", []string{"logs"}, []string{"progress deadline"}},
		"own kinds missing":                       {func(s *Observation) { s.Missing.Own = []string{"ClusterPolicy"} }, "own-kinds", []string{"deploy/crds"}, nil},
		"no admission policies": {func(s *Observation) {
			s.Enforcement, s.Members, s.ChangedBy = []string{"e"}, []string{"m"}, PolicyMissing
		}, "enforcement members changed-by", []string{"enforcement.yaml"}, nil},
		"an older API server": {func(s *Observation) { s.ChangedBy, s.Server = PolicyUnsupported, "v1.33.1" }, "changed-by", []string{"1.36", "v1.33.1"}, nil},
		"resources that no queue covers": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"ephemeral-storage", 2}, {"example.com/nic", 0}}
		}, "uncovered", []string{"+resources:", "+  - ephemeral-storage", "+  - example.com/nic"}, []string{"2 tasks request it"}},
		"accelerators that no queue covers": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"amd.com/gpu", 1}, {"cpu", 0}, {"nvidia.com/mig-1g.5gb", 0}, {"nvidia.com/gpu.shared", 0}}
		}, "uncovered", nil, []string{"amd.com/gpu (1 task requests it), cpu, nvidia.com/mig-1g.5gb, nvidia.com/gpu.shared.", "Give a team quota of it", "Give a team quota of it: amd.com/gpu, cpu, nvidia.com/mig-1g.5gb.", "does not support these accelerators: nvidia.com/gpu.shared."}},
		"accelerators and others that no queue covers": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"ephemeral-storage", 1}, {"nvidia.com/mig-1g.5gb", 1}}
		}, "uncovered", []string{"+  - ephemeral-storage"}, []string{"quota of it", "everyone can use them without quota: ephemeral-storage."}},
		"quota of what Kueue does not count": {func(s *Observation) {
			s.Covered = []string{"cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "pods"}
			s.Kueue.Text += "resources:\n  excludeResourcePrefixes: [nvidia.com/mig-, p, example.com/, nvidia.]\n"
		}, "excluded", []string{"+  excludeResourcePrefixes: [p, example.com/]"}, []string{"their quota has no effect: nvidia.com/gpu, nvidia.com/mig-1g.5gb."}},
		"quota of what Kueue counts": {func(s *Observation) {
			s.Covered = []string{"cpu", "pods"}
			s.Kueue.Text += "resources: {excludeResourcePrefixes: [pods, cpu2]}\n"
		}, "", nil, nil},
		"resources that Kueue does not count": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"ephemeral-storage", 2}}
			s.Kueue.Text += "resources: {excludeResourcePrefixes: [ephemeral]}\n"
		}, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen := whole()
			c.change(&seen)
			gaps := Check(seen)
			var ids []string
			for _, gap := range gaps {
				ids = append(ids, gap.ID)
				if gap.Title == "" || !strings.HasSuffix(strings.TrimSpace(gap.Impact), ".") && gap.ID != "kueue-stuck" {
					t.Errorf("%s says no whole sentence: %q, %q", gap.ID, gap.Title, gap.Impact)
				}
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Fatalf("gaps are %q, want %q", got, c.want)
			}
			for _, want := range c.patch {
				if !strings.Contains(gaps[0].Fix, want) {
					t.Errorf("the patch lacks %q:\n%s", want, gaps[0].Fix)
				}
			}
			for _, want := range c.says {
				if !strings.Contains(gaps[0].Title+" "+gaps[0].Impact, want) {
					t.Errorf("it does not say %q: %s: %s", want, gaps[0].Title, gaps[0].Impact)
				}
			}
		})
	}
}

// What quota may be given of is never to be left out of Kueue's count.
func TestAcceleratorsAreNotLeftOut(t *testing.T) {
	seen := whole()
	for _, name := range []string{"amd.com/gpu", "cpu", "ephemeral-storage", "google.com/tpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "vpc.amazonaws.com/efa"} {
		seen.Uncovered = append(seen.Uncovered, UncoveredResource{Resource: name})
	}
	var lines []string
	for line := range strings.Lines(Check(seen)[0].Fix) {
		if entry, found := strings.CutPrefix(line, "+  - "); found {
			lines = append(lines, entry)
		}
	}
	if got := strings.Join(lines, ""); got != "ephemeral-storage\n" {
		t.Errorf("to be left out are\n%s", got)
	}
}

// Where a version of Kueue runs, or one that is not known, no other is offered,
// except by who reads the release notes first.
func TestNoOtherVersionIsGuessed(t *testing.T) {
	for _, image := range []string{"x:main", "x@sha256:ab", "x:v0.15.2", "x:v0.17.3", "x:v0.20.0", ""} {
		seen := whole()
		seen.Kueue.Image, seen.Missing.Kueue, seen.Visibility, seen.Install.Manage = image, []string{"Cohort"}, false, false
		for _, gap := range Check(seen) {
			if strings.Contains(gap.Fix, "/"+Tested+"/") && !strings.Contains(gap.Fix, "release notes") || strings.Contains(gap.Fix, ":"+Tested) {
				t.Errorf("%q: %s offers another version:\n%s", image, gap.ID, gap.Fix)
			}
		}
	}
}

// What a vendor puts behind a version is no part of the address of Kueue's
// manifests.
func TestManifestsOfAVendorsVersion(t *testing.T) {
	for image, want := range map[string]string{
		"x:v0.18.1-corp.3": "v0.18.1", "x:0.18.1": "v0.18.1", "x:v0.18.1-12-gabcdef": "v0.18.1", "x:v0.18.1@sha256:ab": "v0.18.1", "x:v0.19.0-rc.1": "v0.19.0-rc.1",
	} {
		seen := whole()
		seen.Kueue.Image = image
		patch := reinstallFix(seen)
		if !strings.Contains(patch, "/download/"+want+"/manifests.yaml\n") {
			t.Errorf("of %s it offers\n%s", image, patch)
		}
		if !strings.Contains(patch, "This applies") || strings.Contains(patch, "elsewhere") {
			t.Errorf("of %s it says\n%s", image, patch)
		}
	}
}

// Files in which Kueue has its own names are changed first where it has others.
func TestOtherNamesOfKueue(t *testing.T) {
	for _, changes := range []func(*Observation){
		func(s *Observation) { s.Missing.Kueue, s.KueueRead = allKinds, ReadNotFound },
		func(s *Observation) { s.Missing.Kueue = []string{"Cohort"} },
		func(s *Observation) { s.KueueRead = ReadForbidden },
		func(s *Observation) { s.CanWrite = No },
	} {
		for _, other := range []func(*reconcile.KueueInstall){
			nil,
			func(in *reconcile.KueueInstall) { in.Namespace = "other" },
			func(in *reconcile.KueueInstall) { in.ConfigMap = "other" },
			func(in *reconcile.KueueInstall) { in.Deployment = "other" },
		} {
			seen := whole()
			changes(&seen)
			if other != nil {
				other(&seen.Install)
			}
			gap := Check(seen)[0]
			if told := strings.Contains(gap.Fix, describeInstall(seen.Install)); told != (other != nil) {
				t.Errorf("%s with %s says\n%s", gap.ID, describeInstall(seen.Install), gap.Fix)
			}
			if other != nil && strings.Contains(gap.Fix, "console.yaml") && !strings.Contains(gap.Fix, "change the Role kuota-kueue-configuration and its binding first") {
				t.Errorf("%s does not say what to change first:\n%s", gap.ID, gap.Fix)
			}
		}
	}
	seen := whole()
	seen.CanWrite, seen.Install.Manage = No, false
	if customNames(seen.Install) {
		t.Error("whether the console manages Kueue is taken for a name of Kueue's")
	}
}
