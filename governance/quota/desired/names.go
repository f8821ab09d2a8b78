package desired

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Naming determines the names of objects. The zero value is not useful; start
// from DefaultNaming.
type Naming struct {
	Prefix            string // of every name, before the team
	Cohort            string // of all queues
	InstanceTypeLabel string // the node label that names an instance's type
	Console           string // the user of the console, which creates the Jobs of ElasticJobs; empty creates none

	// Departments are those of the cluster. Without them, a department has a Cohort of
	// Kuota's own and no members.
	Departments []v1alpha1.Department
}

// DefaultNaming is that of HyperPod, for compatibility with its users and
// scripts.
var DefaultNaming = Naming{
	Prefix:            "hyperpod-ns-",
	Cohort:            "shared-pool",
	InstanceTypeLabel: "node.kubernetes.io/instance-type",
	Console:           "system:serviceaccount:kuota-system:kuota",
}

// maxName is the maximum length of a label value: Kueue labels pods with the
// names of their queues.
const maxName = 63

// Under returns the naming under a policy, which may be nil.
func (n Naming) Under(policy *v1alpha1.ClusterPolicy) Naming {
	if policy != nil && policy.Spec.CohortName != "" {
		n.Cohort = policy.Spec.CohortName
	}
	return n
}

// In returns the naming with the departments of the cluster.
func (n Naming) In(departments []v1alpha1.Department) Naming {
	n.Departments = departments
	return n
}

// CohortOf returns the Cohort of the teams of a department: of those without one, the
// shared one.
func (n Naming) CohortOf(department string) string {
	if department == "" {
		return n.Cohort
	}
	if chain := DepartmentChain(n.Departments, department); len(chain) > 0 {
		return DepartmentCohort(chain[0])
	}
	return departmentPrefix + department
}

// DepartmentOf returns the department of a Cohort; empty for the shared one and for those of
// no department.
func (n Naming) DepartmentOf(cohort kueue.CohortReference) string {
	for i := range n.Departments {
		if DepartmentCohort(&n.Departments[i]) == string(cohort) {
			return n.Departments[i].Name
		}
	}
	return ""
}

// ClusterQueueName returns the ClusterQueue of an allocation.
func ClusterQueueName(allocation *v1alpha1.ComputeAllocation, naming Naming) string {
	return cmp.Or(allocation.Spec.ClusterQueueName, naming.ClusterQueue(allocation.Name))
}

// LocalQueueName returns the LocalQueue of an allocation.
func LocalQueueName(allocation *v1alpha1.ComputeAllocation, naming Naming) string {
	return cmp.Or(allocation.Spec.LocalQueueName, naming.LocalQueue(allocation.Name))
}

// Namespace returns the namespace of a team whose allocation names none.
func (n Naming) Namespace(team string) string { return n.name(team, "") }

// ClusterQueue returns the name of the ClusterQueue of a team.
func (n Naming) ClusterQueue(team string) string { return n.name(team, "-clusterqueue") }

// LocalQueue returns the name of the LocalQueue of a team.
func (n Naming) LocalQueue(team string) string { return n.name(team, "-localqueue") }

// ShareQueue returns the name of the LocalQueue of a share of a team.
func (n Naming) ShareQueue(team, share string) string { return n.name(team, "-share-"+share) }

// ShareClusterQueue returns the name of the ClusterQueue of a share of a team that has quota.
func (n Naming) ShareClusterQueue(team, share string) string {
	return n.name(team, "-share-"+share+"-clusterqueue")
}

// ClusterQueueNames returns the ClusterQueues of an allocation: its own, and those of its shares
// with quota.
func ClusterQueueNames(allocation *v1alpha1.ComputeAllocation, naming Naming) []string {
	names := []string{ClusterQueueName(allocation, naming)}
	for i := range allocation.Spec.Shares {
		if share := &allocation.Spec.Shares[i]; len(share.Quota) > 0 {
			names = append(names, naming.ShareClusterQueue(allocation.Name, share.Name))
		}
	}
	return names
}

// name returns prefix, team and suffix. If that is longer than maxName, a hash
// of the whole replaces the end of the base.
func (n Naming) name(team, suffix string) string {
	base := n.Prefix + team
	if len(base)+len(suffix) <= maxName {
		return base + suffix
	}
	sum := sha256.Sum256([]byte(base))
	tail := "-" + hex.EncodeToString(sum[:])[:6] + suffix
	return base[:maxName-len(tail)] + tail
}

// Labels and annotations of the objects of Kuota. The first two are those of
// HyperPod.
const (
	LabelManagedQueue = "sagemaker.amazonaws.com/sagemaker-managed-queue"
	LabelTeam         = "sagemaker.amazonaws.com/quota-allocation-id"
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	LabelGoverned     = "kuota.dev/governed"

	// LabelDepartment has the name of the department that a Cohort or a namespace is of.
	LabelDepartment = "kuota.dev/department"

	// LabelShare has the name of the share that a LocalQueue belongs to.
	LabelShare = "kuota.dev/share"

	// AnnotationShareMembers of a namespace lists the members of shares for the admission
	// policies, one a line: the LocalQueue of the share, the kind and the name.
	AnnotationShareMembers = "kuota.dev/share-members"

	// AnnotationDefaults of a namespace has what tasks get that name none, for an admission
	// policy: lines of "queue", a kind and its LocalQueue, and of "class", a LocalQueue and the
	// WorkloadPriorityClass of its tasks.
	AnnotationDefaults = "kuota.dev/defaults"

	// AnnotationTeam stays on a namespace after its allocation is deleted, so that
	// a new allocation of the same team can use it again.
	AnnotationTeam = "kuota.dev/team"
	// AnnotationDepartment is the department of the team of AnnotationTeam, and stays with it,
	// so that no admin of another department gets what the team left: its name, a slash and
	// its UID. A namespace of a team without a department has none.
	AnnotationDepartment = "kuota.dev/department"
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

// namespaceAnnotations returns the annotations of the namespace of a team.
func namespaceAnnotations(allocation *v1alpha1.ComputeAllocation, naming Naming) map[string]string {
	annotations := map[string]string{AnnotationTeam: allocation.Name}
	if mark := DepartmentMark(naming.Departments, allocation.Spec.Department); mark != "" {
		annotations[AnnotationDepartment] = mark
	}
	if lines := defaults(allocation, naming); len(lines) > 0 {
		annotations[AnnotationDefaults] = strings.Join(lines, "\n")
	}
	return annotations
}

// defaults returns the lines of AnnotationDefaults.
func defaults(allocation *v1alpha1.ComputeAllocation, naming Naming) (lines []string) {
	class := func(queue, name string) {
		if name != "" {
			lines = append(lines, "class "+queue+" "+PriorityClassName(name))
		}
	}
	class(LocalQueueName(allocation, naming), allocation.Spec.DefaultPriorityClass)
	if allocation.Spec.DefaultQueue {
		class(DefaultQueueName, allocation.Spec.DefaultPriorityClass)
	}
	for i := range allocation.Spec.Shares {
		share := &allocation.Spec.Shares[i]
		queue := naming.ShareQueue(allocation.Name, share.Name)
		for _, kind := range share.Kinds {
			lines = append(lines, "queue "+kind+" "+queue)
		}
		class(queue, share.DefaultPriorityClass)
	}
	return lines
}
