package hyperpod

import "kuota.dev/kuota/governance/document"

// The shapes of the API: what create, update and describe have in common is
// read by one type each. Kept fields have no counterpart in Kuota.

type computeQuota struct {
	Name               *string       `json:"Name"`
	Description        *string       `json:"Description"`
	ComputeQuotaConfig *quotaConfig  `json:"ComputeQuotaConfig"`
	ComputeQuotaTarget *target       `json:"ComputeQuotaTarget"`
	ActivationState    *string       `json:"ActivationState"`
	Status             *string       `json:"Status"`
	ClusterArn         document.Kept `json:"ClusterArn"`
	ComputeQuotaArn    document.Kept `json:"ComputeQuotaArn"`
	ComputeQuotaID     document.Kept `json:"ComputeQuotaId"`
	Version            document.Kept `json:"ComputeQuotaVersion"`
	TargetVersion      document.Kept `json:"TargetVersion"`
	FailureReason      document.Kept `json:"FailureReason"`
	Tags               document.Kept `json:"Tags"`
	record             `json:",inline"`
}

// record is what AWS keeps of who wrote something, and when.
type record struct {
	CreationTime     document.Kept `json:"CreationTime"`
	CreatedBy        document.Kept `json:"CreatedBy"`
	LastModifiedTime document.Kept `json:"LastModifiedTime"`
	LastModifiedBy   document.Kept `json:"LastModifiedBy"`
	ResponseMetadata document.Kept `json:"ResponseMetadata"`
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
	Name            document.Kept    `json:"Name"`
	Description     document.Kept    `json:"Description"`
	ClusterArn      document.Kept    `json:"ClusterArn"`
	Arn             document.Kept    `json:"ClusterSchedulerConfigArn"`
	ID              document.Kept    `json:"ClusterSchedulerConfigId"`
	Version         document.Kept    `json:"ClusterSchedulerConfigVersion"`
	TargetVersion   document.Kept    `json:"TargetVersion"`
	FailureReason   document.Kept    `json:"FailureReason"`
	StatusDetails   document.Kept    `json:"StatusDetails"`
	Tags            document.Kept    `json:"Tags"`
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
