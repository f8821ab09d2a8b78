package hyperpod

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"
)

// Shape is the type of an object of the API.
type Shape int

// The shapes, by the operations that take or return them.
const (
	None            Shape = iota
	Quota                 // create-, update- and describe-compute-quota
	QuotaConfig           // its ComputeQuotaConfig alone
	Scheduler             // create-, update- and describe-cluster-scheduler-config
	SchedulerConfig       // its SchedulerConfig alone
	Listing               // list-compute-quotas and list-cluster-scheduler-configs
)

// lists are the fields with the items of a list response.
var lists = []string{"ComputeQuotaSummaries", "ClusterSchedulerConfigSummaries"}

// ShapeOf returns the shape of an object, by fields that only this shape has.
func ShapeOf(n *document.Node) Shape {
	switch {
	case n.Has(lists...):
		return Listing
	case n.Has("ComputeQuotaConfig", "ComputeQuotaTarget", "ComputeQuotaId", "ComputeQuotaArn"):
		return Quota
	case n.Has("SchedulerConfig", "ClusterSchedulerConfigId", "ClusterSchedulerConfigArn"):
		return Scheduler
	case n.Has("ComputeQuotaResources", "ResourceSharingConfig", "PreemptTeamTasks"):
		return QuotaConfig
	case n.Has("PriorityClasses", "FairShare", "IdleResourceSharing"):
		return SchedulerConfig
	}
	return None
}

// ListItems returns the items of a list response, and the field that contains them.
func ListItems(n *document.Node, path string) (items []*document.Node, field string, wrong governance.FieldErrors) {
	for _, f := range n.Fields {
		switch {
		case slices.Contains(lists, f.Name) && f.Node.Kind == document.List:
			items, field = append(items, f.Node.Items...), f.Name
		case slices.Contains(lists, f.Name):
			wrong.Addf(document.Child(path, f.Name), "is not a list; ignored")
		case f.Name == "NextToken" && f.Node.Kind == document.Null:
		case f.Name == "NextToken":
			wrong.Addf(document.Child(path, f.Name), "the list has more pages, which are not in this text")
		case f.Name != "ResponseMetadata":
			wrong.Addf(path, "unknown field %s; ignored", document.Quote(f.Name))
		}
	}
	return items, field, wrong
}

// Allocation converts a compute quota, or only its configuration. It returns nil
// for one that AWS deleted.
func Allocation(n *document.Node, shape Shape, path string) (*v1alpha1.ComputeAllocation, governance.FieldErrors) {
	a := &v1alpha1.ComputeAllocation{}
	var q computeQuota
	var report document.Report
	if shape == QuotaConfig {
		q.ComputeQuotaConfig = &quotaConfig{}
		report = n.Decode(q.ComputeQuotaConfig, path)
	} else {
		report = n.Decode(&q, path)
	}
	c := converter{problems: report.Problems}
	if deleted(q.Status) {
		c.problems.Addf(document.Child(path, "Status"), "is %s: AWS deleted it, so it was not imported", *q.Status)
		return nil, c.problems
	}
	a.Name = c.quota(&a.Spec, &q, shape, path)
	wrong := sanitize(a, pathsOf(shape, path))
	return a, slices.Concat(c.problems, report.Unreported(wrong), withoutEquivalent(report.Opaque, q.Status, path))
}

// Policy converts a scheduler configuration. It returns nil for one that AWS
// deleted, or that has no settings.
func Policy(n *document.Node, shape Shape, path string) (*v1alpha1.ClusterPolicy, governance.FieldErrors) {
	var s scheduler
	var report document.Report
	at := path
	if shape == SchedulerConfig {
		s.SchedulerConfig = &schedulerConfig{}
		report = n.Decode(s.SchedulerConfig, path)
	} else {
		report, at = n.Decode(&s, path), document.Child(path, "SchedulerConfig")
	}
	c := converter{problems: report.Problems}
	informational := withoutEquivalent(report.Opaque, s.Status, path)
	switch {
	case deleted(s.Status):
		c.problems.Addf(document.Child(path, "Status"), "is %s: AWS deleted it, so it was not imported", *s.Status)
		return nil, c.problems
	case s.SchedulerConfig == nil:
		c.problems.Addf(at, "is missing, so nothing was imported; the output of describe-cluster-scheduler-config has it")
		return nil, append(c.problems, informational...)
	}
	p := &v1alpha1.ClusterPolicy{}
	p.Name = v1alpha1.ClusterPolicyName
	c.policy(&p.Spec, s.SchedulerConfig, at)
	wrong := sanitizePolicy(&p.Spec, at)
	return p, slices.Concat(c.problems, report.Unreported(wrong), informational)
}

func deleted(status *string) bool {
	return status != nil && (*status == "Deleted" || *status == "Deleting")
}

// withoutEquivalent reports the fields without an equivalent as one problem.
func withoutEquivalent(fields []string, status *string, path string) (wrong governance.FieldErrors) {
	if status != nil {
		fields = append(fields, document.Child(path, "Status"))
	}
	if len(fields) == 0 {
		return nil
	}
	names := slices.Clone(fields)
	for i := range names {
		names[i] = strings.TrimPrefix(strings.TrimPrefix(names[i], path), ".")
	}
	slices.Sort(names)
	verb := " have no equivalent here and stay"
	if len(names) == 1 {
		verb = " has no equivalent here and stays"
	}
	wrong.Addf(path, "%s", strings.Join(names, ", ")+verb+" with AWS")
	return wrong
}

// One type for each shape covers the create, update and describe operations.
// Opaque fields have no equivalent in Kuota.

type computeQuota struct {
	Name               *string         `json:"Name"`
	Description        *string         `json:"Description"`
	ComputeQuotaConfig *quotaConfig    `json:"ComputeQuotaConfig"`
	ComputeQuotaTarget *target         `json:"ComputeQuotaTarget"`
	ActivationState    *string         `json:"ActivationState"`
	Status             *string         `json:"Status"`
	ClusterArn         document.Opaque `json:"ClusterArn"`
	ComputeQuotaArn    document.Opaque `json:"ComputeQuotaArn"`
	ComputeQuotaID     document.Opaque `json:"ComputeQuotaId"`
	Version            document.Opaque `json:"ComputeQuotaVersion"`
	TargetVersion      document.Opaque `json:"TargetVersion"`
	FailureReason      document.Opaque `json:"FailureReason"`
	Tags               document.Opaque `json:"Tags"`
	record             `json:",inline"`
}

// record is the metadata that AWS adds to a response.
type record struct {
	CreationTime     document.Opaque `json:"CreationTime"`
	CreatedBy        document.Opaque `json:"CreatedBy"`
	LastModifiedTime document.Opaque `json:"LastModifiedTime"`
	LastModifiedBy   document.Opaque `json:"LastModifiedBy"`
	ResponseMetadata document.Opaque `json:"ResponseMetadata"`
}

type quotaConfig struct {
	ComputeQuotaResources []*row   `json:"ComputeQuotaResources"`
	ResourceSharingConfig *sharing `json:"ResourceSharingConfig"`
	PreemptTeamTasks      *string  `json:"PreemptTeamTasks"`
}

type row struct {
	InstanceType         *string           `json:"InstanceType"`
	Count                *int64            `json:"Count"`
	Accelerators         *int64            `json:"Accelerators"`
	VCPU                 *document.Decimal `json:"VCpu"`
	MemoryInGiB          *document.Decimal `json:"MemoryInGiB"`
	AcceleratorPartition *partition        `json:"AcceleratorPartition"`
}

type partition struct {
	Type  *string `json:"Type"`
	Count *int64  `json:"Count"`
}

type sharing struct {
	Strategy            *string `json:"Strategy"`
	BorrowLimit         *int64  `json:"BorrowLimit"`
	AbsoluteBorrowLimit []*row  `json:"AbsoluteBorrowLimits"`
}

type target struct {
	TeamName        *string `json:"TeamName"`
	FairShareWeight *int64  `json:"FairShareWeight"`
}

type scheduler struct {
	SchedulerConfig *schedulerConfig `json:"SchedulerConfig"`
	Status          *string          `json:"Status"`
	Name            document.Opaque  `json:"Name"`
	Description     document.Opaque  `json:"Description"`
	ClusterArn      document.Opaque  `json:"ClusterArn"`
	Arn             document.Opaque  `json:"ClusterSchedulerConfigArn"`
	ID              document.Opaque  `json:"ClusterSchedulerConfigId"`
	Version         document.Opaque  `json:"ClusterSchedulerConfigVersion"`
	TargetVersion   document.Opaque  `json:"TargetVersion"`
	FailureReason   document.Opaque  `json:"FailureReason"`
	StatusDetails   document.Opaque  `json:"StatusDetails"`
	Tags            document.Opaque  `json:"Tags"`
	record          `json:",inline"`
}

type schedulerConfig struct {
	PriorityClasses     []*class `json:"PriorityClasses"`
	FairShare           *string  `json:"FairShare"`
	IdleResourceSharing *string  `json:"IdleResourceSharing"`
}

type class struct {
	Name   *string `json:"Name"`
	Weight *int64  `json:"Weight"`
}
