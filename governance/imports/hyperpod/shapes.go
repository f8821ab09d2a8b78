package hyperpod

import "kuota.dev/kuota/governance/spec/document"

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
