package diagnostics

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/kueue/kueueconfig"
)

// checkConfiguration checks Kueue's configuration, except for what the policy
// determines.
func checkConfiguration(s Observation) (findings []Finding) {
	if s.KueueRead != ReadSucceeded {
		return nil
	}
	seen := s.Kueue.Current
	gates, err := kueueconfig.Gates(seen)
	if err != nil {
		return []Finding{{
			ID: "kueue-configuration", Title: "Kueue's configuration cannot be read", Severity: SeverityError,
			Impact: "Kuota cannot apply fair sharing and gang scheduling of the policy. " + kueueconfig.ErrorMessage(err),
			Fix:    fmt.Sprintf("kubectl --namespace %s edit configmap %s\n", s.Install.Namespace, s.Install.ConfigMap),
		}}
	}
	if !slices.Contains(kueueconfig.Integrations(seen.Text), podIntegration) {
		findings = append(findings, Finding{
			ID: "pods", Title: "Kueue's pod integration is off", Severity: SeverityWarning,
			Impact: "No quota limits single pods and pods of Deployments and StatefulSets. With enforcement on, team namespaces reject them.",
			Fix:    additionFix(seen, kueueconfig.Addition{Frameworks: []string{podIntegration}}),
		})
	}
	findings = append(findings, checkReasons(s, gates)...)
	findings = append(findings, checkExcluded(s)...)
	return append(findings, checkUncovered(s)...)
}

// checkReasons checks how exactly Kueue reports why a task waits.
func checkReasons(s Observation, gates []kueueconfig.Gate) (findings []Finding) {
	seen := s.Kueue.Current
	off := map[string]bool{}
	for _, g := range gates {
		switch {
		case (g.Name == kueueconfig.GateReasons || g.Name == kueueconfig.GateExplicitStatus) && g.Supported && !g.Enabled:
			off[g.Name] = true
		case g.Name == kueueconfig.GateHashing && g.Supported && g.Enabled:
			findings = append(findings, Finding{
				ID: "hashing", Title: "Most reasons for waiting are hidden", Severity: SeverityWarning,
				Impact: "With the gate " + g.Name + " on, most waiting tasks only report that an equivalent workload was not admitted, not what they need.",
				Fix:    additionFix(seen, kueueconfig.Addition{Gates: map[string]bool{g.Name: false}}),
			})
		}
	}
	const impact = "The reason why a task waits is less exact, and missing for some tasks."
	version, older := kueueconfig.Version(seen.Image, reasonsMinor)
	switch {
	case len(off) > 0:
		findings = append(findings, Finding{
			ID: "reasons", Title: "Kueue does not report exact reasons", Severity: SeverityWarning, Impact: impact,
			Fix: additionFix(seen, kueueconfig.Addition{Gates: off}),
		})
	case older:
		findings = append(findings, Finding{
			ID: "reasons", Title: "Kueue " + version + " does not report exact reasons", Severity: SeverityInfo, Impact: impact,
			Fix: "# Kueue reports them from 0.19. Read the release notes of each version in between first.\n" + installFix(s.Install, Tested),
		})
	}
	return findings
}

// checkVisibility checks the API that returns the order of a queue.
func checkVisibility(s Observation) []Finding {
	if s.Visibility || s.KueueRead != ReadSucceeded || s.Kueue.ScaledToZero {
		return nil
	}
	finding := Finding{
		ID: "visibility", Title: "Kueue's visibility API does not answer", Severity: SeverityWarning,
		Impact: "The position of a task in its queue is unknown.",
		Fix:    "# Check whether the API server reaches it:\nkubectl get apiservice v1beta2.visibility.kueue.x-k8s.io --output yaml\n# Kueue's manifests install it:\n",
	}
	if version, older := kueueconfig.Version(s.Kueue.Image, oldestMinor); older {
		finding.Fix = "# Kueue " + version + " may not have it in v1beta2: upgrade Kueue first.\n"
	} else {
		finding.Fix += reinstallFix(s)
	}
	gates, err := kueueconfig.Gates(s.Kueue.Current)
	if err != nil {
		return []Finding{finding}
	}
	for _, g := range gates {
		if g.Name == kueueconfig.GateVisibility && g.Explicit && !g.Enabled {
			finding.Title = "Kueue's visibility API is switched off"
			finding.Fix = additionFix(s.Kueue.Current, kueueconfig.Addition{Gates: map[string]bool{g.Name: true}})
		}
	}
	return []Finding{finding}
}

// checkPolicy checks whether Kueue's configuration matches the policy, unless
// the console corrects it.
func checkPolicy(s Observation) []Finding {
	if s.KueueRead != ReadSucceeded || s.Policy == nil {
		return nil
	}
	want, err := kueueconfig.ForPolicy(s.Kueue.Current, s.Policy)
	if err != nil {
		return nil // another check reports configuration that cannot be read, the policy page an invalid policy
	}
	var findings []Finding
	if (want.ConfigChanged || want.ArgsChanged) && !(s.Manages() && s.CanWrite == Yes) {
		findings = append(findings, Finding{
			ID: "policy", Title: "Kueue does not match the policy", Severity: SeverityError,
			Impact: "Kueue does not match the policy until you apply the changes below. " + strings.Join(want.Changes, " "),
			Fix:    want.Patch,
		})
	}
	if len(want.Unsupported) > 0 {
		findings = append(findings, Finding{ID: "policy-cannot", Title: "Part of the policy cannot be configured", Severity: SeverityWarning, Impact: strings.Join(want.Unsupported, " ")})
	}
	return findings
}

// additionFix returns the patch of an addition, or why there is none.
func additionFix(seen kueueconfig.Current, more kueueconfig.Addition) string {
	wanted, err := kueueconfig.Add(seen, more)
	if err != nil {
		return "# " + kueueconfig.ErrorMessage(err) + "\n"
	}
	return wanted.Patch
}
