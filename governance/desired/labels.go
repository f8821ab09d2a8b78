package desired

// Labels and annotations of what Kuota makes. The first two are HyperPod's.
const (
	LabelManagedQueue = "sagemaker.amazonaws.com/sagemaker-managed-queue"
	LabelTeam         = "sagemaker.amazonaws.com/quota-allocation-id"
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	LabelGoverned     = "kuota.dev/governed"

	// AnnotationTeam stays on a namespace when its allocation goes, so that
	// the same team takes it back.
	AnnotationTeam = "kuota.dev/team"
	// AnnotationDesired is a digest of what Kuota wanted when it last applied
	// an object. An object that differs while the digest is right was changed
	// by somebody else.
	AnnotationDesired = "kuota.dev/desired"

	// AnnotationWeight is the weight of a priority class, which its object does
	// not count for while tasks come first come, first served.
	AnnotationWeight = "kuota.dev/weight"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "kuota"
)

// queueLabels returns the labels of the Kueue objects of a team.
func queueLabels(team string) map[string]string {
	return map[string]string{
		LabelManagedQueue: "true",
		LabelTeam:         team,
		LabelManagedBy:    ManagedBy,
	}
}

// namespaceLabels returns the labels of the namespace of a team. A namespace
// that the allocation names was created by someone else and keeps its
// app.kubernetes.io label.
func namespaceLabels(team string, own bool) map[string]string {
	labels := map[string]string{
		LabelManagedQueue: "true",
		LabelTeam:         team,
		LabelGoverned:     "true",
	}
	if own {
		labels[LabelManagedBy] = ManagedBy
	}
	return labels
}
