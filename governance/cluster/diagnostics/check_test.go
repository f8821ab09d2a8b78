package diagnostics

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

const head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"

// whole returns the observation of a cluster without findings.
func whole() Observation {
	return Observation{
		Server: "v1.36.3", Namespace: "kuota-system", Missing: cluster.MissingKinds{Discovered: true}, Install: reconcile.DefaultKueueInstall,
		Kueue: reconcile.KueueState{Current: kueueconfig.Current{
			Image: "registry.k8s.io/kueue/kueue:v0.19.2",
			Text:  head + "integrations: {frameworks: [batch/job, pod]}\nfeatureGates: {UnadmittedWorkloadsObservability: true, UnadmittedWorkloadsExplicitStatus: true, SchedulingEquivalenceHashing: false, DisableWaitForPodsReady: true}\n",
		}},
		Visibility: true, CanWrite: Yes, ChangedBy: PolicyInstalled, TimeLimits: PolicyInstalled,
	}
}

// limited is a policy whose class has a default time limit.
func limited() *v1alpha1.ClusterPolicySpec {
	return &v1alpha1.ClusterPolicySpec{PriorityClasses: []v1alpha1.PriorityClass{{Name: "dev", DefaultTimeLimitSeconds: ptr.To[int32](60)}}}
}

var allKinds = []string{"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "WorkloadPriorityClass"}

func n(value int32) *int32 { return &value }

func TestCheck(t *testing.T) {
	fair := &v1alpha1.ClusterPolicySpec{IdleCompute: v1alpha1.IdleCompute{Strategy: v1alpha1.IdleFairShare}}
	for name, c := range map[string]struct {
		change func(*Observation)
		want   string   // ids
		fix    []string // contained in the Fix of the first finding
		text   []string // contained in its Title or Impact
	}{
		"nothing is missing": {func(*Observation) {}, "", nil, nil},
		"the API server admits everything": {func(s *Observation) { s.Policy, s.Probe = fair, enforcement.ProbeAdmitted }, "enforcement-not-applied",
			[]string{"kube-apiserver"}, []string{"admits jobs without a queue", "Restart every API server", "ConfigMap kuota-system/kuota-enforcement"}},
		"the API server has outdated parameters": {func(s *Observation) { s.Policy, s.Probe = fair, enforcement.ProbeOutdated }, "enforcement-not-applied",
			nil, []string{"outdated settings"}},
		"the API server rejects the probe": {func(s *Observation) { s.Policy, s.Probe = fair, enforcement.ProbeRejected }, "", nil, nil},
		"a policy that enforces nothing": {func(s *Observation) {
			s.Policy, s.Probe = fair.DeepCopy(), enforcement.ProbeAdmitted
			s.Policy.Enforcement = v1alpha1.EnforcementNone
		}, "", nil, nil},
		"Kueue absent": {func(s *Observation) { s.Missing.Kueue, s.KueueRead, s.Visibility = allKinds, ReadNotFound, false }, "kueue-absent",
			[]string{"kueue/releases/download/v0.19.2/manifests.yaml"}, []string{"not installed", "No quota is enforced"}},
		"Kueue absent, without permissions in its namespace": {func(s *Observation) { s.Missing.Kueue, s.KueueRead = allKinds, ReadForbidden }, "kueue-absent", nil, nil},
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
		"fair sharing differs, --manage-kueue=false": {func(s *Observation) { s.Policy, s.Install.Manage = fair, false }, "policy",
			[]string{"+fairSharing:"}, []string{"Fair sharing is switched on"}},
		"fair sharing differs, no permission":            {func(s *Observation) { s.Policy, s.CanWrite = fair, No }, "policy permission", []string{"+fairSharing:"}, nil},
		"fair sharing differs, corrected by the console": {func(s *Observation) { s.Policy = fair }, "", nil, nil},
		"HyperPod manages the cluster": {func(s *Observation) { s.ReadOnly = "HyperPod's own task governance runs this cluster." }, "read-only",
			[]string{"kubectl get validatingadmissionpolicy hyperpod-task-governance-admission-policy\n", "\n--take-over\n"}, []string{"read-only", "HyperPod's own"}},
		"fair sharing differs, HyperPod manages the cluster": {func(s *Observation) { s.Policy, s.ReadOnly = fair, "HyperPod does." }, "read-only policy", nil, nil},
		"Kueue absent, HyperPod manages the cluster": {func(s *Observation) {
			s.Missing.Kueue, s.KueueRead, s.ReadOnly = allKinds, ReadNotFound, "HyperPod does."
		}, "read-only kueue-absent", nil, nil},
		"without permission, HyperPod manages the cluster": {func(s *Observation) { s.CanWrite, s.ReadOnly = No, "HyperPod does." }, "read-only", nil, nil},
		"without permission":                       {func(s *Observation) { s.CanWrite = No }, "permission", []string{"console.yaml", "--manage-kueue=false"}, []string{"has no permission to change"}},
		"without permission, --manage-kueue=false": {func(s *Observation) { s.CanWrite, s.Install.Manage = No, false }, "", nil, nil},
		"configuration under another name":         {func(s *Observation) { s.KueueRead = ReadNotFound }, "kueue-not-found", []string{"--kueue-configmap="}, nil},
		"no permission to read the configuration":  {func(s *Observation) { s.KueueRead = ReadForbidden }, "kueue-forbidden", []string{"console.yaml"}, nil},
		"reading the configuration failed":         {func(s *Observation) { s.KueueRead = ReadFailed }, "kueue-unread", nil, nil},
		"configuration that is no YAML":            {func(s *Observation) { s.Kueue.Text = "a: [" }, "kueue-configuration", []string{"edit configmap"}, nil},
		"Kueue stopped":                            {func(s *Observation) { s.Kueue.ScaledToZero, s.Visibility = true, false }, "kueue-stopped", []string{"--replicas=1"}, nil},
		"Kueue stuck":                              {func(s *Observation) { s.Kueue.RolloutFailure = "progress deadline exceeded" }, "kueue-stuck", []string{"logs"}, []string{"progress deadline"}},
		"own kinds missing":                        {func(s *Observation) { s.Missing.Own = []string{"ClusterPolicy"} }, "own-kinds", []string{"deploy/crds"}, nil},
		"no admission policies": {func(s *Observation) {
			s.Enforcement, s.Members, s.Departments, s.ChangedBy = []string{"e"}, []string{"m"}, []string{"d"}, PolicyMissing
		}, "enforcement members departments changed-by", []string{"enforcement.yaml"}, nil},
		"installed by Helm": {func(s *Observation) {
			s.HelmRelease, s.Namespace, s.Enforcement = "gpus", "platform", []string{"e"}
		}, "enforcement", []string{"helm upgrade gpus deploy/chart --namespace platform --reset-then-reuse-values\n"}, nil},
		"an older API server":                   {func(s *Observation) { s.ChangedBy, s.Server = PolicyUnsupported, "v1.33.1" }, "changed-by", []string{"1.36", "v1.33.1"}, nil},
		"default time limits that nothing sets": {func(s *Observation) { s.Policy, s.TimeLimits = limited(), PolicyMissing }, "time-limits", []string{"time-limits.yaml"}, []string{"only checked"}},
		"default time limits that an older API server cannot set": {func(s *Observation) {
			s.Policy, s.TimeLimits, s.Server = limited(), PolicyUnsupported, "v1.33.1"
		}, "time-limits", []string{"1.36", "v1.33.1", "time-limits.yaml"}, []string{"only checked"}},
		"no default time limits": {func(s *Observation) { s.Policy, s.TimeLimits = &v1alpha1.ClusterPolicySpec{}, PolicyMissing }, "", nil, nil},
		"time limits without enforcement": {func(s *Observation) {
			s.Policy, s.TimeLimits = limited(), PolicyMissing
			s.Policy.Enforcement = v1alpha1.EnforcementNone
		}, "", nil, nil},
		"resources that no queue covers": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"ephemeral-storage", 2}, {"example.com/nic", 0}}
		}, "uncovered", []string{"+resources:", "+  - ephemeral-storage", "+  - example.com/nic"}, []string{"2 tasks request it"}},
		"accelerators that no queue covers": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"amd.com/gpu", 1}, {"cpu", 0}, {"nvidia.com/mig-1g.5gb", 0}, {"nvidia.com/gpu.shared", 0}}
		}, "uncovered", []string{"+  - nvidia.com/gpu.shared"}, []string{"amd.com/gpu (1 task requests it), cpu, nvidia.com/mig-1g.5gb, nvidia.com/gpu.shared.", "Give a team quota of it", "Give a team quota of it: amd.com/gpu, cpu, nvidia.com/mig-1g.5gb.", "List these in the cluster policy to give teams quota of them: nvidia.com/gpu.shared."}},
		"accelerators and others that no queue covers": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"ephemeral-storage", 1}, {"nvidia.com/mig-1g.5gb", 1}}
		}, "uncovered", []string{"+  - ephemeral-storage"}, []string{"quota of it", "give teams quota of them: ephemeral-storage. If Kueue excludes them, everyone can use them without quota."}},
		"quota of excluded resources": {func(s *Observation) {
			s.Covered = []string{"cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "pods"}
			s.Kueue.Text += "resources:\n  excludeResourcePrefixes: [nvidia.com/mig-, p, example.com/, nvidia.]\n"
		}, "excluded", []string{"+  excludeResourcePrefixes: [p, example.com/]"}, []string{"their quota has no effect: nvidia.com/gpu, nvidia.com/mig-1g.5gb."}},
		"quota of counted resources": {func(s *Observation) {
			s.Covered = []string{"cpu", "pods"}
			s.Kueue.Text += "resources: {excludeResourcePrefixes: [pods, cpu2]}\n"
		}, "", nil, nil},
		"excluded resources without quota": {func(s *Observation) {
			s.Uncovered = []UncoveredResource{{"ephemeral-storage", 2}}
			s.Kueue.Text += "resources: {excludeResourcePrefixes: [ephemeral]}\n"
		}, "", nil, nil},
		"Kubernetes 1.29":                        {func(s *Observation) { s.Server, s.ChangedBy = "v1.29.4-eks-036c24b", PolicyUnsupported }, "kubernetes-older changed-by", nil, []string{"v1.29.4-eks-036c24b is older than 1.30"}},
		"Kubernetes 1.30":                        {func(s *Observation) { s.Server, s.ChangedBy = "v1.30.0", PolicyUnsupported }, "changed-by", []string{"v1.30.0"}, nil},
		"an unknown Kubernetes":                  {func(s *Observation) { s.Server = "" }, "", nil, nil},
		"no permission to impersonate":           {func(s *Observation) { s.SignIn, s.CanImpersonate, s.CanImpersonateEveryone = true, No, No }, "impersonation", []string{"impersonation.yaml"}, []string{"binding is missing"}},
		"no permission to impersonate, no users": {func(s *Observation) { s.CanImpersonate, s.CanImpersonateEveryone = No, No }, "", nil, nil},
		"constrained impersonation":              {func(s *Observation) { s.SignIn, s.CanImpersonate, s.CanImpersonateEveryone = true, Yes, No }, "", nil, nil},
		"constrained impersonation before 1.36, installed by Helm": {func(s *Observation) {
			s.HelmRelease, s.Namespace = "kuota", "kuota-system"
			s.Server, s.SignIn, s.CanImpersonate, s.CanImpersonateEveryone = "v1.35.2", true, Yes, No
		}, "impersonation", []string{"--reset-then-reuse-values --set legacyImpersonation=true\n"}, []string{"v1.35.2 cannot limit impersonation"}},
		"constrained impersonation before 1.36": {func(s *Observation) {
			s.Server, s.SignIn, s.CanImpersonate, s.CanImpersonateEveryone = "v1.35.2", true, Yes, No
		}, "impersonation", []string{"deploy/rbac/legacy\n"}, []string{"v1.35.2 cannot limit impersonation"}},
		"impersonation of every user before 1.36": {func(s *Observation) {
			s.Server, s.SignIn, s.CanImpersonate, s.CanImpersonateEveryone = "v1.35.2", true, No, Yes
		}, "", nil, nil},
		"impersonation that could not be checked": {func(s *Observation) { s.SignIn = true }, "", nil, nil},
		"a namespace that Kueue excludes": {func(s *Observation) {
			s.Others.Namespaces = []TeamNamespace{{"team-b", labels.Set{"tier": "dev"}}, {"team-a", labels.Set{"tier": "prod"}}}
			s.Kueue.Text += "managedJobsNamespaceSelector: {matchLabels: {tier: prod}}\n"
		}, "excluded-namespaces", []string{"edit configmap kueue-manager-config", "get namespace team-b"}, []string{"pods are rejected: team-b."}},
		"namespaces, with the selector of the release": {func(s *Observation) {
			s.Others.Namespaces = []TeamNamespace{{"team-a", labels.Set{"kubernetes.io/metadata.name": "team-a"}}}
			s.Kueue.Text += "managedJobsNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kueue-system]}]}\n"
		}, "", nil, nil},
		"MultiKueue writes quota": {func(s *Observation) { s.Others.QuotaAutomated = []string{"a", "b", "c", "d", "e", "f"} }, "quota-automation", []string{`"quotaManagement":"Manual"`}, []string{"a, b, c, d, e and 1 more."}},
		"an orchestrator replaces quota": {func(s *Observation) {
			s.EffectiveQuotas, s.Kueue.Image = []string{"a"}, "x:v0.20.0"
			s.Kueue.Text = strings.Replace(s.Kueue.Text, "DisableWait", "DynamicQuotaOrchestration: true, DisableWait", 1)
		}, "effective-quotas", []string{"orchestratorRef", "+featureGates", "DynamicQuotaOrchestration: false"}, []string{"replaces the quota of their teams"}},
		"a PreemptionConfig":                      {func(s *Observation) { s.Others.PreemptionConfigs = []string{"a", "b"} }, "preemption-config", []string{"annotate clusterqueue a b kueue.x-k8s.io/preemption-config-name-\n"}, []string{"does not evaluate"}},
		"an admission scope":                      {func(s *Observation) { s.Others.UsageOrdered = []string{"a"} }, "admission-scope", []string{`"admissionScope":null`}, []string{"before priority"}},
		"priority boosts, with the gate off":      {func(s *Observation) { s.Others.Boosted = 2 }, "", nil, nil},
		"a default class that Kueue does not use": {func(s *Observation) { s.Others.DefaultPriority = n(5) }, "", nil, nil},
		"a default class with priority 0":         {func(s *Observation) { s.Others.DefaultPriority, s.Kueue.Image = n(0), "x:v0.20.0" }, "", nil, nil},
		"a default class":                         {func(s *Observation) { s.Others.DefaultPriority, s.Kueue.Image = n(5), "x:v0.20.0" }, "default-class", []string{"delete workloadpriorityclass default\n", "WorkloadPriorityClassDefaulting: false"}, []string{"Their priority is 5"}},
		"priority boosts": {func(s *Observation) {
			s.Others.Boosted = 1
			s.Kueue.Text = strings.Replace(s.Kueue.Text, "DisableWait", "PriorityBoost: true, DisableWait", 1)
		}, "priority-boost", []string{"PriorityBoost: false"}, []string{"1 task has the annotation"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := whole()
			c.change(&seen)
			findings := Check(seen)
			var ids []string
			for _, finding := range findings {
				ids = append(ids, finding.ID)
				if finding.Title == "" || !strings.HasSuffix(strings.TrimSpace(finding.Impact), ".") && finding.ID != "kueue-stuck" {
					t.Errorf("%s: Impact is not a sentence: %q, %q", finding.ID, finding.Title, finding.Impact)
				}
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Fatalf("got findings %q, want %q", got, c.want)
			}
			for _, want := range c.fix {
				if !strings.Contains(findings[0].Fix, want) {
					t.Errorf("the fix does not contain %q:\n%s", want, findings[0].Fix)
				}
			}
			for _, want := range c.text {
				if !strings.Contains(findings[0].Title+" "+findings[0].Impact, want) {
					t.Errorf("title and impact do not contain %q: %s: %s", want, findings[0].Title, findings[0].Impact)
				}
			}
		})
	}
}

// No fix excludes a resource that Kuota has quota for.
func TestFixExcludesNoAccelerators(t *testing.T) {
	resources.List([]v1alpha1.ListedResource{{Name: "google.com/tpu", Label: "TPUs"}})
	t.Cleanup(func() { resources.List(nil) })
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
		t.Errorf("the fix excludes\n%s", got)
	}
}

// No fix installs another version of Kueue than the running one without pointing to
// the release notes.
func TestFixSuggestsNoOtherVersion(t *testing.T) {
	for _, image := range []string{"x:main", "x@sha256:ab", "x:v0.15.2", "x:v0.17.3", "x:v0.20.0", ""} {
		seen := whole()
		seen.Kueue.Image, seen.Missing.Kueue, seen.Visibility, seen.Install.Manage = image, []string{"Cohort"}, false, false
		for _, finding := range Check(seen) {
			if strings.Contains(finding.Fix, "/"+Tested+"/") && !strings.Contains(finding.Fix, "release notes") || strings.Contains(finding.Fix, ":"+Tested) {
				t.Errorf("%q: %s suggests another version:\n%s", image, finding.ID, finding.Fix)
			}
		}
	}
}

// The URL of Kueue's manifests has no vendor suffix of the version.
func TestManifestsOfVendorVersion(t *testing.T) {
	for image, want := range map[string]string{
		"x:v0.18.1-corp.3": "v0.18.1", "x:0.18.1": "v0.18.1", "x:v0.18.1-12-gabcdef": "v0.18.1", "x:v0.18.1@sha256:ab": "v0.18.1", "x:v0.19.0-rc.1": "v0.19.0-rc.1",
	} {
		seen := whole()
		seen.Kueue.Image = image
		patch := reinstallFix(seen)
		if !strings.Contains(patch, "/download/"+want+"/manifests.yaml\n") {
			t.Errorf("%s: got\n%s", image, patch)
		}
		if !strings.Contains(patch, "This applies") || strings.Contains(patch, "elsewhere") {
			t.Errorf("%s: got\n%s", image, patch)
		}
	}
}

// If Kueue has custom names, fixes that apply manifests say what to change first.
func TestCustomNamesOfKueue(t *testing.T) {
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
			finding := Check(seen)[0]
			if found := strings.Contains(finding.Fix, describeInstall(seen.Install)); found != (other != nil) {
				t.Errorf("%s with %s: got\n%s", finding.ID, describeInstall(seen.Install), finding.Fix)
			}
			if other != nil && strings.Contains(finding.Fix, "console.yaml") && !strings.Contains(finding.Fix, "change the Role kuota-kueue-configuration and its binding first") {
				t.Errorf("%s does not contain what to change first:\n%s", finding.ID, finding.Fix)
			}
		}
	}
	seen := whole()
	seen.CanWrite, seen.Install.Manage = No, false
	if customNames(seen.Install) {
		t.Error("Manage counts as a custom name")
	}
}
