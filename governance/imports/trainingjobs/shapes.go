package trainingjobs

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/spec/manifest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Opaque fields have no equivalent in an ElasticJob.

// header is the part that all jobs share.
type header struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Metadata   manifest.JobMetadata `json:"metadata"`
	Status     document.Opaque      `json:"status"`
}

// hyperPodJob is a HyperPodPyTorchJob.
type hyperPodJob struct {
	header `json:",inline"`
	Spec   struct {
		NProcPerNode  *intstr.IntOrString    `json:"nprocPerNode"`
		ReplicaSpecs  []replicas             `json:"replicaSpecs"`
		RunPolicy     runPolicy              `json:"runPolicy"`
		ElasticPolicy v1alpha1.ElasticPolicy `json:"elasticPolicy"`
		ScaleConfig   []v1alpha1.ScaleConfig `json:"scaleConfig"`
		LogMonitoring document.Opaque        `json:"logMonitoringConfiguration"`
	} `json:"spec"`
}

// replicas is a group of equal pods.
type replicas struct {
	Name          string                 `json:"name"`
	Replicas      *int32                 `json:"replicas"`
	MaxReplicas   *int32                 `json:"maxReplicas"`
	RestartPolicy corev1.RestartPolicy   `json:"restartPolicy"`
	Spares        document.Opaque        `json:"spares"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

type runPolicy struct {
	BackoffLimit          *int32          `json:"backoffLimit"`
	MaxRetries            *int32          `json:"jobMaxRetryCount"`
	ActiveDeadlineSeconds *int64          `json:"activeDeadlineSeconds"`
	CleanPodPolicy        document.Opaque `json:"cleanPodPolicy"`
	TTL                   document.Opaque `json:"ttlSecondsAfterFinished"`
	Suspend               document.Opaque `json:"suspend"` // Kueue sets it
	ManagedBy             document.Opaque `json:"managedBy"`
	SchedulingPolicy      document.Opaque `json:"schedulingPolicy"`
	WorkloadMode          document.Opaque `json:"workloadMode"`
	RestartPolicy         struct {
		// ScaleUpSnooze is how long a job does not grow after a restart.
		ScaleUpSnooze *int32          `json:"scaleUpSnoozeTimeInSeconds"`
		Restarts      document.Opaque `json:"numRestartBeforeFullJobRestart"`
		MaxRestarts   document.Opaque `json:"maxFullJobRestarts"`
		EvalPeriod    document.Opaque `json:"evalPeriodSeconds"`
	} `json:"restartPolicy"`
}

// pyTorchJob is a PyTorchJob of Kubeflow.
type pyTorchJob struct {
	header `json:",inline"`
	Spec   struct {
		NProcPerNode *intstr.IntOrString `json:"nprocPerNode"`
		ReplicaSpecs struct {
			Master *replicas `json:"Master"`
			Worker *replicas `json:"Worker"`
		} `json:"pytorchReplicaSpecs"`
		RunPolicy     runPolicy            `json:"runPolicy"`
		ElasticPolicy pyTorchElasticPolicy `json:"elasticPolicy"`
	} `json:"spec"`
}

type pyTorchElasticPolicy struct {
	MinReplicas  *int32              `json:"minReplicas"`
	MaxReplicas  *int32              `json:"maxReplicas"`
	NProcPerNode *intstr.IntOrString `json:"nProcPerNode"`
	Backend      string              `json:"rdzvBackend"`
	Config       []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"rdzvConf"`
	Standalone  bool            `json:"standalone"`
	MaxRestarts *int32          `json:"maxRestarts"`
	Port        document.Opaque `json:"rdzvPort"`
	Host        document.Opaque `json:"rdzvHost"`
	ID          document.Opaque `json:"rdzvId"`
	Metrics     document.Opaque `json:"metrics"`
}
