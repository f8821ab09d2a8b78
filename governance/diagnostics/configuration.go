package diagnostics

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/kueueconfig"
)

// configuration is what Kueue's configuration lacks beside what the policy
// decides.
func configuration(s Seen) (gaps []Gap) {
	if s.Unread != Read {
		return nil
	}
	seen := s.Kueue.Seen
	gates, err := kueueconfig.Gates(seen)
	if err != nil {
		return []Gap{{
			ID: "kueue-configuration", Title: "Kueue's configuration cannot be read", Severity: Breaks,
			Costs: "Kuota cannot apply fair sharing and gang scheduling of the policy. " + kueueconfig.Sentence(err),
			Patch: fmt.Sprintf("kubectl --namespace %s edit configmap %s\n", s.Install.Namespace, s.Install.ConfigMap),
		}}
	}
	if !slices.Contains(kueueconfig.Integrations(seen.Text), podIntegration) {
		gaps = append(gaps, Gap{
			ID: "pods", Title: "Kueue's pod integration is off", Severity: Lacks,
			Costs: "No quota limits single pods and pods of Deployments and StatefulSets. With enforcement on, team namespaces reject them.",
			Patch: added(seen, kueueconfig.Addition{Frameworks: []string{podIntegration}}),
		})
	}
	gaps = append(gaps, reasons(s, gates)...)
	gaps = append(gaps, excluded(s)...)
	return append(gaps, uncovered(s)...)
}

// reasons is about how exactly Kueue says why a task waits.
func reasons(s Seen, gates []kueueconfig.Gate) (gaps []Gap) {
	seen := s.Kueue.Seen
	off := map[string]bool{}
	for _, g := range gates {
		switch {
		case (g.Name == kueueconfig.GateReasons || g.Name == kueueconfig.GateExplicitStatus) && g.Known && !g.On:
			off[g.Name] = true
		case g.Name == kueueconfig.GateHashing && g.Known && g.On:
			gaps = append(gaps, Gap{
				ID: "hashing", Title: "Most reasons for waiting are hidden", Severity: Lacks,
				Costs: "With the gate " + g.Name + " on, most waiting tasks only report that an equivalent workload was not admitted, not what they need.",
				Patch: added(seen, kueueconfig.Addition{Gates: map[string]bool{g.Name: false}}),
			})
		}
	}
	const costs = "The reason why a task waits is less exact, and missing for some tasks."
	version, older := kueueconfig.Version(seen.Image, reasonsMinor)
	switch {
	case len(off) > 0:
		gaps = append(gaps, Gap{
			ID: "reasons", Title: "Kueue does not report exact reasons", Severity: Lacks, Costs: costs,
			Patch: added(seen, kueueconfig.Addition{Gates: off}),
		})
	case older:
		gaps = append(gaps, Gap{
			ID: "reasons", Title: "Kueue " + version + " does not report exact reasons", Severity: Hint, Costs: costs,
			Patch: "# Kueue reports them from 0.19. Read the release notes of each version in between first.\n" + install(s.Install, Tested),
		})
	}
	return gaps
}

// visibility is about the API that tells the order of a queue.
func visibility(s Seen) []Gap {
	if s.Visibility || s.Unread != Read || s.Kueue.Stopped {
		return nil
	}
	gap := Gap{
		ID: "visibility", Title: "Kueue's visibility API does not answer", Severity: Lacks,
		Costs: "The position of a task in its queue is unknown.",
		Patch: "# Check whether the API server reaches it:\nkubectl get apiservice v1beta2.visibility.kueue.x-k8s.io --output yaml\n# Kueue's manifests install it:\n",
	}
	if version, older := kueueconfig.Version(s.Kueue.Image, minor); older {
		gap.Patch = "# Kueue " + version + " may not have it in v1beta2: upgrade Kueue first.\n"
	} else {
		gap.Patch += again(s)
	}
	gates, err := kueueconfig.Gates(s.Kueue.Seen)
	if err != nil {
		return []Gap{gap}
	}
	for _, g := range gates {
		if g.Name == kueueconfig.GateVisibility && g.Set && !g.On {
			gap.Title = "Kueue's visibility API is switched off"
			gap.Patch = added(s.Kueue.Seen, kueueconfig.Addition{Gates: map[string]bool{g.Name: true}})
		}
	}
	return []Gap{gap}
}

// policy is about what the policy says and Kueue's configuration does not,
// where the console does not put that right itself.
func policy(s Seen) []Gap {
	if s.Unread != Read || s.Policy == nil {
		return nil
	}
	want, err := kueueconfig.Want(s.Kueue.Seen, s.Policy)
	if err != nil {
		return nil // what cannot be read is told already; what the policy says wrong, its card tells
	}
	var gaps []Gap
	if (want.ConfigChanged || want.ArgsChanged) && !(s.Manages() && s.MayWrite == Yes) {
		gaps = append(gaps, Gap{
			ID: "policy", Title: "Kueue does not match the policy", Severity: Breaks,
			Costs: "Kueue does not match the policy until you apply the changes below. " + strings.Join(want.Changes, " "),
			Patch: want.Patch,
		})
	}
	if len(want.Cannot) > 0 {
		gaps = append(gaps, Gap{ID: "policy-cannot", Title: "Part of the policy cannot be configured", Severity: Lacks, Costs: strings.Join(want.Cannot, " ")})
	}
	return gaps
}

// added is the patch of an addition, or why there is none.
func added(seen kueueconfig.Seen, more kueueconfig.Addition) string {
	wanted, err := kueueconfig.Add(seen, more)
	if err != nil {
		return "# " + kueueconfig.Sentence(err) + "\n"
	}
	return wanted.Patch
}
