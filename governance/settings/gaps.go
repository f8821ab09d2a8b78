package settings

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
		ID: "read-only", Title: "The console only reads", Severity: Breaks, Costs: s.ReadOnly,
		Patch: "# The admission policy by which the console tells:\nkubectl get validatingadmissionpolicy " + cluster.HyperPodPolicy + "\n# It goes with the add-on. To write all the same, start the console with:\n--take-over\n",
	}}
}

// kinds are missing definitions.
func kinds(s Seen) (gaps []Gap) {
	if len(s.Kinds.Own) > 0 {
		gaps = append(gaps, Gap{
			ID: "own-kinds", Title: "Kuota's own kinds are missing: " + strings.Join(s.Kinds.Own, ", "), Severity: Breaks,
			Costs: "There is no place for policies and allocations, and every page but this one has nothing to show.",
			Patch: "kubectl apply --server-side -f deploy/crds\n",
		})
	}
	switch k := s.Kinds; {
	case slices.ContainsFunc(k.Versions, newer):
		gaps = append(gaps, Gap{
			ID: "kueue-newer", Title: fmt.Sprintf("Kueue serves its kinds in %s only", strings.Join(k.Versions, ", ")), Severity: Breaks,
			Costs: "Kuota speaks v1beta2, and this Kueue is newer than that: queues and tasks are not shown, and nothing is written to Kueue.",
			Patch: "# Look for a newer Kuota: an older Kueue may not read what this one keeps.\n",
		})
	case len(k.Versions) > 0:
		gaps = append(gaps, Gap{
			ID: "kueue-older", Title: fmt.Sprintf("Kueue serves its kinds in %s only", strings.Join(k.Versions, ", ")), Severity: Breaks,
			Costs: "Kuota speaks v1beta2, which Kueue serves from version 0.15 on, and was tried with Kueue 0.16.1 and 0.19.2: queues and tasks are not shown, and nothing is written to Kueue.",
			Patch: "# Read Kueue's release notes for each version in between first.\n" + install(s.Install, Tested),
		})
	case k.None() && s.Unread != Read:
		gaps = append(gaps, Gap{
			ID: "kueue-absent", Title: "Kueue is not installed", Severity: Breaks,
			Costs: "No task waits in a queue and no quota holds anything back. Policies and allocations can be made, and take effect once Kueue is there; the console goes on by itself then.",
			Patch: "# Kueue " + Tested + " is the version that Kuota is tested with.\n" + install(s.Install, Tested) + "# Then the console's rights in Kueue's namespace:\n" + rights(s.Install),
		})
	case len(k.Kueue) > 0:
		gaps = append(gaps, Gap{
			ID: "kueue-kinds", Title: "Kinds of Kueue are missing: " + strings.Join(k.Kueue, ", "), Severity: Breaks,
			Costs: "Controllers wait for all of Kueue's kinds: until then nothing that is changed here reaches Kueue.",
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
			Costs: "It is not known how Kueue is set up, so fair sharing and gang scheduling of the policy are not carried out. " + s.Cause,
			Patch: fmt.Sprintf("# Kuota looks for %s.\n# Where Kueue has other names, start the console with them:\n--kueue-namespace=… --kueue-configmap=… --kueue-deployment=…\n", place(s.Install)),
		}}
	case Forbidden:
		return []Gap{{
			ID: "kueue-forbidden", Title: "The console may not read Kueue's configuration", Severity: Breaks,
			Costs: "It is not known how Kueue is set up, so fair sharing and gang scheduling of the policy are not carried out, and this page cannot tell what else is missing.",
			Patch: "# The Role kuota-kueue-configuration and its binding bring the right:\n" + rights(s.Install),
		}}
	case Failed:
		return []Gap{{ID: "kueue-unread", Title: "Kueue's configuration could not be read", Severity: Breaks, Costs: "It is not known how Kueue is set up. Load this page again. " + s.Cause}}
	}
	version, older := kueueconfig.Version(s.Kueue.Image, minor)
	switch {
	case version == "":
		gaps = append(gaps, Gap{
			ID: "kueue-version", Title: "Kueue's version is not known", Severity: Lacks,
			Costs: fmt.Sprintf("The image %s does not tell it, so gates are neither offered here nor changed for gang scheduling.", s.Kueue.Image),
			Patch: setImage(s),
		})
	case older && len(s.Kinds.Versions) == 0:
		gaps = append(gaps, Gap{
			ID: "kueue-older", Title: "Kueue " + version + " is older than 0.16", Severity: Breaks,
			Costs: "Kuota was tried with Kueue 0.16.1 and 0.19.2; with this one, queues may be refused, and tasks may say nothing or something else about why they wait.",
			Patch: "# Read Kueue's release notes for each version in between first.\n" + install(s.Install, Tested),
		})
	}
	switch {
	case s.Kueue.Stopped:
		gaps = append(gaps, Gap{
			ID: "kueue-stopped", Title: "Kueue does not run", Severity: Breaks,
			Costs: "Its Deployment has 0 replicas: no task starts, and jobs cannot be submitted.",
			Patch: fmt.Sprintf("kubectl --namespace %s scale deployment %s --replicas=1\n", s.Install.Namespace, s.Install.Deployment),
		})
	case s.Kueue.Stuck != "":
		gaps = append(gaps, Gap{
			ID: "kueue-stuck", Title: "Kueue does not come up", Severity: Breaks,
			Costs: "Its new configuration is not in force. Kubernetes says: " + s.Kueue.Stuck,
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
		ID: "permission", Title: "The console may not change Kueue's configuration", Severity: Lacks,
		Costs: "Fair sharing and gang scheduling of the policy are not carried out by themselves; the pages show what to change by hand.",
		Patch: "# Either give it the right:\n" + rights(s.Install) + "# or, where Kueue is configured by others, have the console know:\n--manage-kueue=false\n",
	}}
}

// admission is about Kuota's admission policies.
func admission(s Seen) (gaps []Gap) {
	if len(s.Enforcement) > 0 {
		gaps = append(gaps, Gap{
			ID: "enforcement", Title: "Admission policies against jobs beside Kueue are missing", Severity: Lacks,
			Costs: "Whoever leaves the queue out runs past every quota. Missing: " + strings.Join(s.Enforcement, ", ") + ".",
			Patch: "kubectl apply --server-side -f deploy/rbac/enforcement.yaml\n",
		})
	}
	if len(s.Members) > 0 {
		gaps = append(gaps, Gap{
			ID: "members", Title: "Admission policies for members are missing", Severity: Breaks,
			Costs: "Members of a team may change more than they should, such as the priority of a task. Missing: " + strings.Join(s.Members, ", ") + ".",
			Patch: "kubectl apply --server-side -f deploy/rbac/members.yaml\n",
		})
	}
	switch s.ChangedBy {
	case Missing:
		gaps = append(gaps, Gap{
			ID: "changed-by", Title: "The API server does not note who made a change", Severity: Lacks,
			Costs: "Versions of policies and allocations show which program made a change, and not who, or why.",
			Patch: "kubectl apply --server-side -f deploy/rbac/changed-by.yaml\n",
		})
	case NotServed:
		gaps = append(gaps, Gap{
			ID: "changed-by", Title: "The API server cannot note who made a change", Severity: Hint,
			Costs: "Versions of policies and allocations show which program made a change, and not who, or why.",
			Patch: fmt.Sprintf("# Kubernetes has MutatingAdmissionPolicy from 1.36; this API server is %s.\n# After its upgrade:\nkubectl apply --server-side -f deploy/rbac/changed-by.yaml\n", s.Server),
		})
	}
	return gaps
}
