package diagnostics

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueueconfig"

	"k8s.io/apimachinery/pkg/version"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Severity says how much a gap takes away.
type Severity int

// Severities, the worst first.
const (
	Breaks Severity = iota // something does not work
	Lacks                  // something works less well
	Hint                   // worth knowing
)

// Gap is something that is missing.
type Gap struct {
	ID    string // fixed, and fit for an HTML id
	Title string
	Costs string // what does not work without it, in a sentence
	Patch string // the exact lines or commands
	Severity
}

const (
	// Tested is the version of Kueue that Kuota is tested with.
	Tested = "v0.19.2"
	// minor is that of the oldest version that Kuota was tried with, 0.minor.
	// The one before serves v1beta2 already.
	minor = 16
	// reasonsMinor is that of the first version with exact reasons.
	reasonsMinor = 19
)

const podIntegration = "pod"

// Gaps are all that is missing, those first that the others follow from.
func Gaps(s Seen) []Gap {
	var gaps []Gap
	for _, look := range []func(Seen) []Gap{governor, kinds, installation, configuration, visibility, policy, permission, admission} {
		gaps = append(gaps, look(s)...)
	}
	return gaps
}

// governor is about who else governs the cluster.
func governor(s Seen) []Gap {
	if s.ReadOnly == "" {
		return nil
	}
	return []Gap{{
		ID: "read-only", Title: "The console is read-only", Severity: Breaks, Costs: s.ReadOnly,
		Patch: "# The console detects it by this admission policy:\nkubectl get validatingadmissionpolicy " + cluster.HyperPodPolicy + "\n# It is removed with the add-on. To write anyway, start the console with:\n--take-over\n",
	}}
}

// kinds are missing definitions.
func kinds(s Seen) (gaps []Gap) {
	if len(s.Kinds.Own) > 0 {
		gaps = append(gaps, Gap{
			ID: "own-kinds", Title: "Kuota's CRDs are missing: " + strings.Join(s.Kinds.Own, ", "), Severity: Breaks,
			Costs: "Policies and allocations cannot be stored, and only this page works.",
			Patch: "kubectl apply --server-side -f deploy/crds\n",
		})
	}
	switch k := s.Kinds; {
	case slices.ContainsFunc(k.Versions, newer):
		gaps = append(gaps, Gap{
			ID: "kueue-newer", Title: fmt.Sprintf("Kueue serves its API in %s only", strings.Join(k.Versions, ", ")), Severity: Breaks,
			Costs: "Kuota needs v1beta2, and this Kueue is newer. Queues and tasks are not shown, and nothing is written to Kueue.",
			Patch: "# Upgrade Kuota. Do not downgrade Kueue: an older version may not read the stored objects.\n",
		})
	case len(k.Versions) > 0:
		gaps = append(gaps, Gap{
			ID: "kueue-older", Title: fmt.Sprintf("Kueue serves its API in %s only", strings.Join(k.Versions, ", ")), Severity: Breaks,
			Costs: "Kuota needs v1beta2, which Kueue serves from 0.15, and is tested with 0.16.1 and 0.19.2. Queues and tasks are not shown, and nothing is written to Kueue.",
			Patch: "# Read Kueue's release notes of each version in between first.\n" + install(s.Install, Tested),
		})
	case k.None() && s.Unread != Read:
		gaps = append(gaps, Gap{
			ID: "kueue-absent", Title: "Kueue is not installed", Severity: Breaks,
			Costs: "No quota is enforced. Policies and allocations take effect once Kueue is installed.",
			Patch: "# Kueue " + Tested + " is the version that Kuota is tested with.\n" + install(s.Install, Tested) + "# Then the console's permissions in Kueue's namespace:\n" + rights(s.Install),
		})
	case len(k.Kueue) > 0:
		gaps = append(gaps, Gap{
			ID: "kueue-kinds", Title: "CRDs of Kueue are missing: " + strings.Join(k.Kueue, ", "), Severity: Breaks,
			Costs: "Kuota's controllers wait for all CRDs of Kueue. Until then, changes do not reach Kueue.",
			Patch: again(s),
		})
	}
	return gaps
}

// newer tells whether a version of Kueue's kinds came after the one that Kuota
// speaks.
func newer(served string) bool {
	return version.CompareKubeAwareVersionStrings(served, kueue.SchemeGroupVersion.Version) > 0
}

// installation is about the Kueue that runs.
func installation(s Seen) (gaps []Gap) {
	if s.Unread != Read && s.Kinds.None() {
		return nil // it is not installed at all; without its namespace there are no rights in it either
	}
	switch s.Unread {
	case NotThere:
		return []Gap{{
			ID: "kueue-not-found", Title: "Kueue's configuration was not found", Severity: Breaks,
			Costs: "Kuota cannot apply fair sharing and gang scheduling of the policy. " + s.Cause,
			Patch: fmt.Sprintf("# Kuota expects %s.\n# If Kueue has other names, start the console with:\n--kueue-namespace=… --kueue-configmap=… --kueue-deployment=…\n", place(s.Install)),
		}}
	case Forbidden:
		return []Gap{{
			ID: "kueue-forbidden", Title: "The console has no permission to read Kueue's configuration", Severity: Breaks,
			Costs: "Kuota cannot apply fair sharing and gang scheduling of the policy, and this page may miss other problems.",
			Patch: "# The Role kuota-kueue-configuration and its binding grant it:\n" + rights(s.Install),
		}}
	case Failed:
		return []Gap{{ID: "kueue-unread", Title: "Kueue's configuration cannot be read", Severity: Breaks, Costs: "Kueue's settings are unknown. Reload this page. " + s.Cause}}
	}
	version, older := kueueconfig.Version(s.Kueue.Image, minor)
	switch {
	case version == "":
		gaps = append(gaps, Gap{
			ID: "kueue-version", Title: "Kueue's version is unknown", Severity: Lacks,
			Costs: fmt.Sprintf("The image %s does not show it, so Kuota neither suggests nor changes feature gates.", s.Kueue.Image),
			Patch: setImage(s),
		})
	case older && len(s.Kinds.Versions) == 0:
		gaps = append(gaps, Gap{
			ID: "kueue-older", Title: "Kueue " + version + " is older than 0.16", Severity: Breaks,
			Costs: "Kuota is tested with Kueue 0.16.1 and 0.19.2. This version may reject queues and report other reasons for waiting.",
			Patch: "# Read Kueue's release notes of each version in between first.\n" + install(s.Install, Tested),
		})
	}
	switch {
	case s.Kueue.Stopped:
		gaps = append(gaps, Gap{
			ID: "kueue-stopped", Title: "Kueue is not running", Severity: Breaks,
			Costs: "Its Deployment has 0 replicas. No task is admitted, and jobs cannot be submitted.",
			Patch: fmt.Sprintf("kubectl --namespace %s scale deployment %s --replicas=1\n", s.Install.Namespace, s.Install.Deployment),
		})
	case s.Kueue.Stuck != "":
		gaps = append(gaps, Gap{
			ID: "kueue-stuck", Title: "Kueue does not become ready", Severity: Breaks,
			Costs: "Its new configuration is not active. Kubernetes reports: " + s.Kueue.Stuck,
			Patch: fmt.Sprintf("kubectl --namespace %s get pods\nkubectl --namespace %s logs deployment/%s\n", s.Install.Namespace, s.Install.Namespace, s.Install.Deployment),
		})
	}
	return gaps
}

// permission is about what the console may change.
func permission(s Seen) []Gap {
	if s.Unread != Read || s.MayWrite != No || !s.Manages() {
		return nil
	}
	return []Gap{{
		ID: "permission", Title: "The console has no permission to change Kueue's configuration", Severity: Lacks,
		Costs: "Kuota does not apply fair sharing and gang scheduling of the policy. The policy page shows what to change by hand.",
		Patch: "# Either grant the permission:\n" + rights(s.Install) + "# or, if someone else configures Kueue, start the console with:\n--manage-kueue=false\n",
	}}
}

// admission is about Kuota's admission policies.
func admission(s Seen) (gaps []Gap) {
	if len(s.Enforcement) > 0 {
		gaps = append(gaps, Gap{
			ID: "enforcement", Title: "Admission policies against jobs without a queue are missing", Severity: Lacks,
			Costs: "Jobs without a queue are admitted, and no quota limits them. Missing: " + strings.Join(s.Enforcement, ", ") + ".",
			Patch: "kubectl apply --server-side -f deploy/rbac/enforcement.yaml\n",
		})
	}
	if len(s.Members) > 0 {
		gaps = append(gaps, Gap{
			ID: "members", Title: "Admission policies for members are missing", Severity: Breaks,
			Costs: "Members can change more than intended, such as the priority of a task. Missing: " + strings.Join(s.Members, ", ") + ".",
			Patch: "kubectl apply --server-side -f deploy/rbac/members.yaml\n",
		})
	}
	switch s.ChangedBy {
	case Missing:
		gaps = append(gaps, Gap{
			ID: "changed-by", Title: "The API server does not record who made a change", Severity: Lacks,
			Costs: "Versions of policies and allocations show the program that made a change, not the user and the reason.",
			Patch: "kubectl apply --server-side -f deploy/rbac/changed-by.yaml\n",
		})
	case NotServed:
		gaps = append(gaps, Gap{
			ID: "changed-by", Title: "The API server cannot record who made a change", Severity: Hint,
			Costs: "Versions of policies and allocations show the program that made a change, not the user and the reason.",
			Patch: fmt.Sprintf("# Kubernetes has MutatingAdmissionPolicy from 1.36; this API server is %s.\n# After its upgrade:\nkubectl apply --server-side -f deploy/rbac/changed-by.yaml\n", s.Server),
		})
	}
	return gaps
}
