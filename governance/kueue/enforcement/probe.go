package enforcement

import (
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
)

// The probe finds an API server that does not read the parameters of the
// policies. Kubernetes 1.36 stops its watch of ConfigMaps when no
// ValidatingAdmissionPolicy with a ConfigMap as parameter is left, and never
// starts it again: policies that are created later see the ConfigMap as it was
// then, or none, and then admit everything.
//
// All policies of this package share that watch. So one more of them, which only
// applies to the ConfigMap itself, must reject every patch with the probe's
// annotation. The console may patch that ConfigMap, and needs neither a team's
// namespace, nor Kueue's webhooks, nor a permission to create jobs.
const (
	// ProbePolicy is the name of that policy.
	ProbePolicy = Prefix + "probe"
	// InstallationKey is the key of the ConfigMap with the UID of that policy. It
	// changes the parameters when the policies are installed again, so that the
	// probe does not pass by parameters that happen to be the same as before.
	InstallationKey = "installation"

	probeAnnotation = "kuota.dev/probe"
	probeOutdated   = "the API server has outdated parameters"
	probeCurrent    = "the API server has the current parameters"
)

// ProbePatch is the merge patch of the ConfigMap that the API server must reject.
// It is sent as a dry run.
const ProbePatch = `{"metadata":{"annotations":{"` + probeAnnotation + `":"true"}}}`

// ProbeResult is what the API server's response to ProbePatch shows.
type ProbeResult string

// The results of a probe.
const (
	ProbeUnknown  ProbeResult = ""         // no response, or of something else
	ProbeRejected ProbeResult = "Rejected" // as it must
	ProbeOutdated ProbeResult = "Outdated" // the policies see other parameters than the ConfigMap has
	ProbeAdmitted ProbeResult = "Admitted" // the policies see no parameters, and admit everything
)

// ProbeResultOf returns the result of a probe from the error of the patch.
func ProbeResultOf(err error) ProbeResult {
	switch {
	case err == nil:
		return ProbeAdmitted
	case !strings.Contains(err.Error(), ProbePolicy):
		return ProbeUnknown
	case strings.Contains(err.Error(), probeOutdated):
		return ProbeOutdated
	case strings.Contains(err.Error(), probeCurrent):
		return ProbeRejected
	}
	return ProbeUnknown
}

// probe returns the admission policy that rejects ProbePatch.
func probe() *admission.ValidatingAdmissionPolicy {
	p := newPolicy("probe", "", []string{"v1"}, "configmaps", admission.Update)
	spec := &p.Spec
	spec.MatchConstraints.NamespaceSelector = nil
	spec.MatchConstraints.ResourceRules[0].ResourceNames = []string{ConfigMapName}
	spec.MatchConditions = []admission.MatchCondition{{Name: "probe", Expression: "object.metadata.?annotations[?'" + probeAnnotation + "'].hasValue()"}}
	spec.Validations = []admission.Validation{{
		Expression:        "false",
		MessageExpression: "params.?data.orValue({}) == object.?data.orValue({}) ? '" + probeCurrent + "' : '" + probeOutdated + "'",
	}}
	return p
}
