package desired

// Labels and annotations of the objects of Kuota. The first two are those of
// HyperPod.
const (
	LabelManagedQueue = "sagemaker.amazonaws.com/sagemaker-managed-queue"
	LabelTeam         = "sagemaker.amazonaws.com/quota-allocation-id"
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	LabelGoverned     = "kuota.dev/governed"

	// LabelShare has the name of the share that a LocalQueue belongs to.
	LabelShare = "kuota.dev/share"

	// AnnotationShareMembers of a namespace lists the members of shares for the admission
	// policies, one a line: the LocalQueue of the share, the kind and the name.
	AnnotationShareMembers = "kuota.dev/share-members"

	// AnnotationTeam stays on a namespace after its allocation is deleted, so that
	// a new allocation of the same team can use it again.
	AnnotationTeam = "kuota.dev/team"
	// AnnotationDesired is a digest of the desired state when Kuota last applied an
	// object. If an object differs while the digest matches, someone else changed
	// it.
	AnnotationDesired = "kuota.dev/desired"

	// AnnotationOrder of a ClusterQueue says how Kueue orders its tasks and since when, if
	// Kuota changed that of an existing ClusterQueue: "usage 2026-11-25T14:00:00.000000Z".
	AnnotationOrder = "kuota.dev/order"

	// AnnotationWeight is the weight of a priority class. The value of its object is
	// 0 while tasks are served first come, first served.
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
