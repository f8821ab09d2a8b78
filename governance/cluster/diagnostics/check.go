package diagnostics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Severity is how much a finding impairs.
type Severity string

// Severities, the most severe first.
const (
	SeverityError   Severity = "Error"   // something does not work
	SeverityWarning Severity = "Warning" // something works less well
	SeverityInfo    Severity = "Info"    // worth knowing
)

// Finding is one problem with what to do about it.
type Finding struct {
	ID       string   `json:"id"` // stable, and valid as an HTML id
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Impact   string   `json:"impact"` // what does not work, in a sentence
	Fix      string   `json:"fix"`    // exact lines or commands to fix it; may be empty
}

const (
	// Tested is the version of Kueue that Kuota is tested with.
	Tested = "v0.19.2"
	// oldestMinor is the minor version of the oldest Kueue that Kuota is tested with.
	// The version before serves v1beta2 already.
	oldestMinor = 16
	// oldestKubernetes is the minor version of the oldest Kubernetes that Kuota is
	// tested with, and constrainedKubernetes of the first with constrained
	// impersonation and mutating admission policies.
	oldestKubernetes      = 30
	constrainedKubernetes = 36
	// reasonsMinor is the minor version of the first Kueue with exact reasons.
	reasonsMinor = 19
)

const podIntegration = "pod"

// Check returns all findings, causes before their consequences.
func Check(s Observation) []Finding {
	var findings []Finding
	for _, check := range []func(Observation) []Finding{checkReadOnly, checkKubernetes, checkCRDs, checkInstallation, checkConfiguration, checkVisibility, checkPolicy, checkOthers, checkPermission, checkAdmissionPolicies, checkKinds} {
		findings = append(findings, check(s)...)
	}
	return findings
}

// checkReadOnly checks whether HyperPod's add-on manages the cluster.
func checkReadOnly(s Observation) []Finding {
	if s.ReadOnly == "" {
		return nil
	}
	return []Finding{{
		ID: "read-only", Title: "The console is read-only", Severity: SeverityError, Impact: s.ReadOnly,
		Fix: "# The console detects it by this admission policy:\nkubectl get validatingadmissionpolicy " + cluster.HyperPodPolicy + "\n# It is removed with the add-on. To write anyway, start the console with:\n--take-over\n",
	}}
}

// checkKubernetes checks the version of the API server and what depends on it.
func checkKubernetes(s Observation) (findings []Finding) {
	minor, known := kubernetesMinor(s.Server)
	if known && minor < oldestKubernetes {
		findings = append(findings, Finding{
			ID: "kubernetes-older", Title: fmt.Sprintf("Kubernetes %s is older than 1.%d", s.Server, oldestKubernetes), Severity: SeverityError,
			Impact: fmt.Sprintf("Admission policies and their functions are stable from 1.%d on: before, nothing rejects jobs without a queue, and members can change more than intended.", oldestKubernetes),
			Fix:    "# Upgrade the cluster.\n",
		})
	}
	if !s.SignIn || s.CanImpersonateEveryone != No || s.CanImpersonate == Unknown {
		return findings
	}
	switch {
	case known && minor < constrainedKubernetes:
		findings = append(findings, Finding{
			ID: "impersonation", Title: "The console may not act as signed-in users", Severity: SeverityError,
			Impact: fmt.Sprintf("Users can see pages and save nothing. Kubernetes %s cannot limit impersonation to requests, as 1.%d can, so the console needs the permission to act as every user: read docs/privileges.md first.", s.Server, constrainedKubernetes),
			Fix:    applyFix(s, "rbac/legacy", "legacyImpersonation=true"),
		})
	case s.CanImpersonate == No:
		findings = append(findings, Finding{
			ID: "impersonation", Title: "The console may not act as signed-in users", Severity: SeverityError,
			Impact: "Users can see pages and save nothing. The ClusterRole kuota-impersonation or its binding is missing.",
			Fix:    applyFix(s, "rbac/impersonation.yaml"),
		})
	}
	return findings
}

// kubernetesMinor returns the minor version of Kubernetes 1.
func kubernetesMinor(server string) (minor int, known bool) {
	v, err := versionutil.ParseGeneric(server)
	if err != nil || v.Major() != 1 {
		return 0, false
	}
	return int(v.Minor()), true
}

// checkCRDs checks for missing CRDs.
func checkCRDs(s Observation) (findings []Finding) {
	if len(s.Missing.Own) > 0 {
		findings = append(findings, Finding{
			ID: "own-kinds", Title: "Kuota's CRDs are missing: " + strings.Join(s.Missing.Own, ", "), Severity: SeverityError,
			Impact: "Policies and allocations cannot be stored, and only this page works.",
			Fix:    applyFix(s, "crds"),
		})
	}
	switch k := s.Missing; {
	case slices.ContainsFunc(k.KueueVersions, isNewer):
		findings = append(findings, Finding{
			ID: "kueue-newer", Title: fmt.Sprintf("Kueue serves its API in %s only", strings.Join(k.KueueVersions, ", ")), Severity: SeverityError,
			Impact: "Kuota needs v1beta2, and this Kueue is newer. Queues and tasks are not shown, and nothing is written to Kueue.",
			Fix:    "# Upgrade Kuota. Do not downgrade Kueue: an older version may not read the stored objects.\n",
		})
	case len(k.KueueVersions) > 0:
		findings = append(findings, Finding{
			ID: "kueue-older", Title: fmt.Sprintf("Kueue serves its API in %s only", strings.Join(k.KueueVersions, ", ")), Severity: SeverityError,
			Impact: "Kuota needs v1beta2, which Kueue serves from 0.15, and is tested with 0.16.1 and 0.19.2. Queues and tasks are not shown, and nothing is written to Kueue.",
			Fix:    "# Read Kueue's release notes of each version in between first.\n" + installFix(s.Install, Tested),
		})
	case k.NoKueue() && s.KueueRead != ReadSucceeded:
		findings = append(findings, Finding{
			ID: "kueue-absent", Title: "Kueue is not installed", Severity: SeverityError,
			Impact: "No quota is enforced. Policies and allocations take effect once Kueue is installed.",
			Fix:    "# Kueue " + Tested + " is the version that Kuota is tested with.\n" + installFix(s.Install, Tested) + "# Then the console's permissions in Kueue's namespace:\n" + grantFix(s),
		})
	case len(k.Kueue) > 0:
		findings = append(findings, Finding{
			ID: "kueue-kinds", Title: "CRDs of Kueue are missing: " + strings.Join(k.Kueue, ", "), Severity: SeverityError,
			Impact: "Kuota's controllers wait for all CRDs of Kueue. Until then, changes do not reach Kueue.",
			Fix:    reinstallFix(s),
		})
	}
	return findings
}

// isNewer reports whether a version of Kueue's API is newer than the one that
// Kuota uses.
func isNewer(served string) bool {
	return version.CompareKubeAwareVersionStrings(served, kueue.SchemeGroupVersion.Version) > 0
}

// checkInstallation checks the Kueue that runs.
func checkInstallation(s Observation) (findings []Finding) {
	if s.KueueRead != ReadSucceeded && s.Missing.NoKueue() {
		return nil // not installed; without its namespace there are no permissions in it either
	}
	switch s.KueueRead {
	case ReadNotFound:
		return []Finding{{
			ID: "kueue-not-found", Title: "Kueue's configuration was not found", Severity: SeverityError,
			Impact: "Kuota cannot apply fair sharing and gang scheduling of the policy. " + s.KueueReadError,
			Fix:    fmt.Sprintf("# Kuota expects %s.\n# If Kueue has other names, start the console with:\n--kueue-namespace=… --kueue-configmap=… --kueue-deployment=…\n", describeInstall(s.Install)),
		}}
	case ReadForbidden:
		return []Finding{{
			ID: "kueue-forbidden", Title: "The console has no permission to read Kueue's configuration", Severity: SeverityError,
			Impact: "Kuota cannot apply fair sharing and gang scheduling of the policy, and this page may miss other problems.",
			Fix:    "# The Role kuota-kueue-configuration and its binding grant it:\n" + grantFix(s),
		}}
	case ReadFailed:
		return []Finding{{ID: "kueue-unread", Title: "Kueue's configuration cannot be read", Severity: SeverityError, Impact: "Kueue's settings are unknown. Reload this page. " + s.KueueReadError}}
	}
	version, older := kueueconfig.Version(s.Kueue.Image, oldestMinor)
	switch {
	case version == "":
		findings = append(findings, Finding{
			ID: "kueue-version", Title: "Kueue's version is unknown", Severity: SeverityWarning,
			Impact: fmt.Sprintf("The image %s does not show it, so Kuota neither suggests nor changes feature gates.", s.Kueue.Image),
			Fix:    tagImageFix(s),
		})
	case older && len(s.Missing.KueueVersions) == 0:
		findings = append(findings, Finding{
			ID: "kueue-older", Title: "Kueue " + version + " is older than 0.16", Severity: SeverityError,
			Impact: "Kuota is tested with Kueue 0.16.1 and 0.19.2. This version may reject queues and report other reasons for waiting.",
			Fix:    "# Read Kueue's release notes of each version in between first.\n" + installFix(s.Install, Tested),
		})
	}
	switch {
	case s.Kueue.ScaledToZero:
		findings = append(findings, Finding{
			ID: "kueue-stopped", Title: "Kueue is not running", Severity: SeverityError,
			Impact: "Its Deployment has 0 replicas. No task is admitted, and jobs cannot be submitted.",
			Fix:    fmt.Sprintf("kubectl --namespace %s scale deployment %s --replicas=1\n", s.Install.Namespace, s.Install.Deployment),
		})
	case s.Kueue.RolloutFailure != "":
		findings = append(findings, Finding{
			ID: "kueue-stuck", Title: "Kueue does not become ready", Severity: SeverityError,
			Impact: "Its new configuration is not active. Kubernetes reports: " + s.Kueue.RolloutFailure,
			Fix:    fmt.Sprintf("kubectl --namespace %s get pods\nkubectl --namespace %s logs deployment/%s\n", s.Install.Namespace, s.Install.Namespace, s.Install.Deployment),
		})
	}
	return findings
}

// checkPermission checks whether the console can change Kueue's configuration.
func checkPermission(s Observation) []Finding {
	if s.KueueRead != ReadSucceeded || s.CanWrite != No || !s.Manages() {
		return nil
	}
	return []Finding{{
		ID: "permission", Title: "The console has no permission to change Kueue's configuration", Severity: SeverityWarning,
		Impact: "Kuota does not apply fair sharing and gang scheduling of the policy. The policy page shows what to change by hand.",
		Fix:    "# Either grant the permission:\n" + grantFix(s) + "# or, if someone else configures Kueue, start the console with:\n--manage-kueue=false\n",
	}}
}

// checkAdmissionPolicies checks for Kuota's admission policies.
func checkAdmissionPolicies(s Observation) (findings []Finding) {
	if len(s.Enforcement) > 0 {
		findings = append(findings, Finding{
			ID: "enforcement", Title: "Admission policies against jobs without a queue are missing", Severity: SeverityWarning,
			Impact: "Jobs without a queue are admitted, and no quota limits them. Missing: " + strings.Join(s.Enforcement, ", ") + ".",
			Fix:    applyFix(s, "rbac/enforcement.yaml"),
		})
	}
	if s.Enforces() && (s.Probe == enforcement.ProbeAdmitted || s.Probe == enforcement.ProbeOutdated) {
		findings = append(findings, Finding{
			ID: "enforcement-not-applied", Title: "The API server does not apply the admission policies", Severity: SeverityError,
			Impact: reconcile.NotAppliedMessage(s.Probe, s.Namespace) + ".",
			Fix: fmt.Sprintf("# 1. Each line must be: %[1]s %[2]s\nkubectl get validatingadmissionpolicybindings -o jsonpath='{range .items[?(@.spec.paramRef)]}{.spec.paramRef.namespace} {.spec.paramRef.name}{\"\\n\"}{end}'\n"+
				"# 2. Restart every API server, one after another. With kubeadm, on each control plane node:\nmv /etc/kubernetes/manifests/kube-apiserver.yaml /tmp && sleep 30 && mv /tmp/kube-apiserver.yaml /etc/kubernetes/manifests/\n"+
				"# In a managed cluster, ask its provider.\n", s.Namespace, enforcement.ConfigMapName),
		})
	}
	if len(s.Members) > 0 {
		findings = append(findings, Finding{
			ID: "members", Title: "Admission policies for members are missing", Severity: SeverityError,
			Impact: "Members can change more than intended, such as the priority of a task. Missing: " + strings.Join(s.Members, ", ") + ".",
			Fix:    applyFix(s, "rbac/members.yaml"),
		})
	}
	if len(s.Departments) > 0 {
		findings = append(findings, Finding{
			ID: "departments", Title: "Admission policies for departments are missing", Severity: SeverityWarning,
			Impact: "Admins of departments cannot change teams: Kuota lets them only while the API server limits them. Missing: " + strings.Join(s.Departments, ", ") + ".",
			Fix:    applyFix(s, "rbac/departments.yaml"),
		})
	}
	findings = append(findings, checkMutating(s, s.ChangedBy, "changed-by", "record who made a change",
		"Versions of policies and allocations show the program that made a change, not the user and the reason.")...)
	if s.SetsTimeLimits() {
		findings = append(findings, checkMutating(s, s.TimeLimits, "time-limits", "set default time limits",
			"Time limits are only checked: a task that names none gets a default only on the console's submit page. In a class with a longest time limit other tasks without one are rejected, and in other classes they run without limit.")...)
	}
	return findings
}

// checkMutating checks for the mutating admission policies of rbac/ID.yaml, by which the
// API server does something.
func checkMutating(s Observation, state PolicyState, id, does, impact string) []Finding {
	fix := applyFix(s, "rbac/"+id+".yaml")
	switch state {
	case PolicyMissing:
		return []Finding{{ID: id, Title: "The API server does not " + does, Severity: SeverityWarning, Impact: impact, Fix: fix}}
	case PolicyUnsupported:
		after := fmt.Sprintf("# Kubernetes has MutatingAdmissionPolicy from 1.36; this API server is %s.\n# After its upgrade:\n", s.Server)
		return []Finding{{ID: id, Title: "The API server cannot " + does, Severity: SeverityInfo, Impact: impact, Fix: after + fix}}
	}
	return nil
}

// reinstallFix returns commands to apply the manifests of the running version.
// For an unknown version it suggests none, because another version would be an
// upgrade or a downgrade.
func reinstallFix(s Observation) string {
	version, _ := kueueconfig.Version(s.Kueue.Image, oldestMinor)
	if version == "" {
		return "# The running version of Kueue is unknown: apply the manifests of that version.\n"
	}
	return installFix(s.Install, version)
}

// releasePattern matches the part of a version that Kueue's releases have,
// without a vendor's suffix.
var releasePattern = regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.\d+)?`)

// installFix returns commands to apply Kueue's manifests of a version.
func installFix(in reconcile.KueueInstall, version string) string {
	text := "# This applies Kueue's default ConfigMap and Deployment. Where kubectl reports a conflict, keep your version.\n" +
		"# It reports no conflict for objects that were applied in the same way: back up both first.\n"
	if customNames(in) {
		text += fmt.Sprintf("# The console expects %s. Change these names in the manifests first.\n", describeInstall(in))
	}
	return text + "kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/" + releasePattern.FindString(version) + "/manifests.yaml\n"
}

// grantFix returns commands to grant the console its permissions.
func grantFix(s Observation) string {
	text := ""
	if customNames(s.Install) && s.HelmRelease == "" { // the values of a release have the names
		text = fmt.Sprintf("# In this file, change the Role kuota-kueue-configuration and its binding first: %s.\n", describeInstall(s.Install))
	}
	return text + applyFix(s, "rbac/console.yaml")
}

// applyFix returns the command that applies a path of deploy. Where Helm installed the
// console it applies the whole chart: kubectl would apply objects without the values of
// the release. It sets values, such as name=true.
func applyFix(s Observation, path string, values ...string) string {
	if s.HelmRelease != "" {
		command := fmt.Sprintf("helm upgrade %s deploy/chart --namespace %s --reset-then-reuse-values", s.HelmRelease, s.Namespace)
		for _, value := range values {
			command += " --set " + value
		}
		return "# With the chart of the running version, and the values of the release:\n" + command + "\n"
	}
	return "kubectl apply --server-side -f deploy/" + path + "\n"
}

// customNames reports whether Kueue is configured under other names than those
// of its manifests.
func customNames(in reconcile.KueueInstall) bool {
	in.Manage = reconcile.DefaultKueueInstall.Manage
	return in != reconcile.DefaultKueueInstall
}

func describeInstall(in reconcile.KueueInstall) string {
	return fmt.Sprintf("ConfigMap %s and Deployment %s in namespace %s", in.ConfigMap, in.Deployment, in.Namespace)
}

// imageWithTagPlaceholder returns an image with a placeholder in place of its
// tag.
func imageWithTagPlaceholder(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	return image + ":<version that runs>" // a shell rejects it unless it is replaced
}

// tagImageFix returns commands to use an image tag that shows Kueue's version.
func tagImageFix(s Observation) string {
	return fmt.Sprintf("# Tag the running image with its version, such as %s, and use that tag:\nkubectl --namespace %s set image deployment %s manager=%s\n",
		Tested, s.Install.Namespace, s.Install.Deployment, imageWithTagPlaceholder(s.Kueue.Image))
}
