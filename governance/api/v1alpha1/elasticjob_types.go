package v1alpha1

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ElasticState is the state of an ElasticJob.
type ElasticState string

// The states of an ElasticJob.
const (
	ElasticPending   ElasticState = "Pending"   // its minimum waits for quota
	ElasticRunning   ElasticState = "Running"   // its minimum is admitted
	ElasticSuspended ElasticState = "Suspended" // spec.suspend is true
	ElasticSucceeded ElasticState = "Succeeded"
	ElasticFailed    ElasticState = "Failed"
)

// Finished reports whether the job has ended.
func (s ElasticState) Finished() bool { return s == ElasticSucceeded || s == ElasticFailed }

// ScaleCause is why the size of an ElasticJob changed.
// +kubebuilder:validation:MaxLength=64
type ScaleCause string

// The causes of a change of size.
const (
	ScaleAdmitted    ScaleCause = "Admitted"         // Kueue admitted the minimum
	ScaleIdleCompute ScaleCause = "IdleCompute"      // it grew into idle compute
	ScaleProvisioned ScaleCause = "Provisioned"      // nodes came for growth that had asked for them
	ScaleNoNodes     ScaleCause = "NoNodes"          // no nodes came in time: growth that waited for them was withdrawn, and the size did not change
	ScalePreempted   ScaleCause = "Preempted"        // Kueue preempted pods for another task
	ScaleEvicted     ScaleCause = "Evicted"          // Kueue evicted pods for another reason
	ScaleWithdrawn   ScaleCause = "Withdrawn"        // Kuota withdrew growth for a task that is entitled to its quota
	ScalePodsFailed  ScaleCause = "PodsFailed"       // pods failed for too long
	ScaleNodeLost    ScaleCause = "NodeLost"         // a node is lost, and its pods are not replaced
	ScaleUneven      ScaleCause = "NotAnAllowedSize" // without lost pods, the remaining ones are no allowed size
	ScaleResized     ScaleCause = "Resized"          // a user changed the sizes
	ScalePolicy      ScaleCause = "PolicyChanged"    // a user changed the policy, and the size did not change yet
	ScaleSuspended   ScaleCause = "Suspended"        // a user suspended the job
	ScaleDeleted     ScaleCause = "Deleted"          // a user deleted one of its Jobs
	ScaleSucceeded   ScaleCause = "Succeeded"
	ScaleFailed      ScaleCause = "Failed"
)

// ScaleCauses are all causes.
var ScaleCauses = []ScaleCause{
	ScaleAdmitted, ScaleIdleCompute, ScaleProvisioned, ScaleNoNodes, ScalePreempted, ScaleEvicted, ScaleWithdrawn, ScalePodsFailed, ScaleNodeLost, ScaleUneven, ScaleResized, ScalePolicy,
	ScaleSuspended, ScaleDeleted, ScaleSucceeded, ScaleFailed,
}

// ConditionJobsCreated is False while a Job or the Service of an ElasticJob cannot be
// created.
const ConditionJobsCreated = "JobsCreated"

// Reasons of ConditionJobsCreated.
const (
	ReasonConflict = "NameConflict" // an object of another owner has the name
	ReasonRejected = "Rejected"     // the API server rejects it
)

// ConditionProvisioning is False while an ElasticJob whose growth is Provision cannot ask
// for nodes.
const ConditionProvisioning = "Provisioning"

// Reasons of ConditionProvisioning.
const (
	ReasonAdmissionBlocked = "AdmissionBlocked" // Kueue admits no task while pods of another are not ready
	ReasonClassMissing     = "ClassMissing"     // the PriorityClass ProvisionClass does not exist
)

// ProvisionClass is the PriorityClass of the pods of growth that waits for nodes.
// kube-scheduler preempts no pod for them, and gives new nodes to pods of the default
// priority first. cluster-autoscaler ignores pods below -10.
const ProvisionClass = "kuota-provision"

// MaxScaleEvents is how many events the status contains.
const MaxScaleEvents = 32

// ScaleEvent is one change of the size of an ElasticJob, or of its minimum or its policy.
type ScaleEvent struct {
	// Number counts the events of the job from 1, without gaps.
	// +required
	Number int64 `json:"number"`
	// +required
	Time metav1.Time `json:"time"`
	// From is the number of pods with quota before the change, and To after it.
	// +required
	From int32 `json:"from"`
	// +required
	To int32 `json:"to"`
	// Minimum is how many pods of To are not growth.
	// +optional
	Minimum int32 `json:"minimum,omitempty"`
	// +required
	Cause ScaleCause `json:"cause"`
	// ForWorkload is the UID of the Workload that the pods were preempted or withdrawn
	// for. Names are not recorded, because it can be of another team.
	// +optional
	ForWorkload types.UID `json:"forWorkload,omitempty"`
	// By is the user who resized or suspended the job, or changed its policy.
	// +optional
	By string `json:"by,omitempty"`
	// Changes are the fields of the policy that a user changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Changes []PolicyChange `json:"changes,omitempty"`
	// Node is the node that is lost.
	// +optional
	Node string `json:"node,omitempty"`
	// Idle is whose idle compute the growth used, at its admission.
	// +optional
	Idle *IdleSources `json:"idle,omitempty"`
}

// PolicyChange is a changed field of an ElasticPolicy.
type PolicyChange struct {
	// Field is its name, such as maxReplicas.
	// +required
	Field string `json:"field"`
	// From is its value before; empty for none.
	// +optional
	From string `json:"from,omitempty"`
	// To is its value since; empty for none.
	// +optional
	To string `json:"to,omitempty"`
}

// IdleSources are the sources of the compute that growth used.
type IdleSources struct {
	// Own is whether it used idle quota of its own team.
	// +optional
	Own bool `json:"own,omitempty"`
	// Unallocated is whether it used compute that is allocated to no team.
	// +optional
	Unallocated bool `json:"unallocated,omitempty"`
	// Lenders are the UIDs of the ComputeAllocations that lent. Names are not recorded,
	// because members of the team may not see those of other teams.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Lenders []types.UID `json:"lenders,omitempty"`
}

// ElasticFinalizer keeps an ElasticJob until its Jobs and its Service are deleted.
// They have no owner reference to it: deleting the CustomResourceDefinition deletes
// all ElasticJobs, and must not end their pods.
const ElasticFinalizer = "kuota.dev/elastic"

// Labels of the Jobs, pods and the Service of an ElasticJob.
const (
	LabelElasticJob       = "kuota.dev/elastic-job"       // the name of the ElasticJob
	LabelElasticJobUID    = "kuota.dev/elastic-job-uid"   // its UID
	LabelElasticIncrement = "kuota.dev/elastic-increment" // the number of an increment, from 1; 0 for the base
	LabelElasticProvision = "kuota.dev/elastic-provision" // true for an increment that asks for nodes; on its Job only
)

// ElasticPartName returns the name of the Job of an increment of an ElasticJob, from 1;
// for 0 that of its base.
func ElasticPartName(job string, increment int) string {
	if increment == 0 {
		return job + "-base"
	}
	return fmt.Sprintf("%s-grow-%d", job, increment)
}

// ElasticJobOf returns the ElasticJob that a Job belongs to, by the Job's name and the
// labels of its pods; empty for none. Labels that the controller gives to a Job of
// another name do not count.
func ElasticJobOf(job string, labels map[string]string) (name string, uid types.UID) {
	n, err := strconv.Atoi(labels[LabelElasticIncrement])
	if name = labels[LabelElasticJob]; err != nil || n < 0 || name == "" || job != ElasticPartName(name, n) {
		return "", ""
	}
	return name, types.UID(labels[LabelElasticJobUID])
}

// ElasticJobKind is the kind of ElasticJobs.
const ElasticJobKind = "ElasticJob"

// ElasticJob is a training that runs with its minimum of pods, grows into idle
// compute, and gives back what other tasks need. Its queue and priority class are
// Kueue's labels kueue.x-k8s.io/queue-name and kueue.x-k8s.io/priority-class.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ej
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 47 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="a name has at most 47 lower-case letters, digits and hyphens, starts with a letter, and ends with a letter or digit"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.elasticPolicy.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.elasticPolicy.maxReplicas`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ElasticJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ElasticJobSpec `json:"spec"`
	// +optional
	Status ElasticJobStatus `json:"status,omitzero"`
}

// ElasticJobSpec is the desired state of an ElasticJob.
// +kubebuilder:validation:XValidation:rule="!has(self.scaleConfig) || self.scaleConfig.all(c, c.replicas >= self.elasticPolicy.minReplicas && c.replicas <= self.elasticPolicy.maxReplicas)",message="scaleConfig has a size outside minReplicas and maxReplicas"
// +kubebuilder:validation:XValidation:rule="has(self.baseNodeSelector) == has(oldSelf.baseNodeSelector) && (!has(self.baseNodeSelector) || self.baseNodeSelector == oldSelf.baseNodeSelector)",message="baseNodeSelector cannot be changed; submit another job",fieldPath=".baseNodeSelector"
type ElasticJobSpec struct {
	// Suspend stops the job: its pods end, and it releases its quota.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// +required
	ElasticPolicy ElasticPolicy `json:"elasticPolicy"`

	// ScaleConfig is the environment of pods for each size.
	// +optional
	// +listType=map
	// +listMapKey=replicas
	// +kubebuilder:validation:MaxItems=64
	ScaleConfig []ScaleConfig `json:"scaleConfig,omitempty"`

	// Template is the pod that all replicas are created from. It cannot be changed. Its
	// restart policy is OnFailure unless it is set to Never.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`

	// BaseNodeSelector are labels that the nodes of the minimum have beside those that the
	// template names, such as those of a pool of reserved nodes. Growth runs on any nodes that
	// the template allows, on the cheapest first if the cluster policy has prices. It cannot
	// be changed.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	BaseNodeSelector map[string]string `json:"baseNodeSelector,omitempty"`

	// BackoffLimit is how many pods of the minimum can fail before the job fails.
	// +optional
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// ActiveDeadlineSeconds is how long the job can run before it fails. The time
	// starts again after a preemption of the minimum.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// ElasticPolicy sets the sizes of a job, and how it scales. The field names are
// those of HyperPod's elasticPolicy.
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas is larger than maxReplicas"
// +kubebuilder:validation:XValidation:rule="has(self.replicaIncrementStep) != has(self.replicaDiscreteValues)",message="set one of replicaIncrementStep and replicaDiscreteValues"
// +kubebuilder:validation:XValidation:rule="!has(self.replicaIncrementStep) || (self.maxReplicas - self.minReplicas) % self.replicaIncrementStep == 0",message="maxReplicas cannot be reached from minReplicas in steps of replicaIncrementStep"
// +kubebuilder:validation:XValidation:rule="!has(self.replicaIncrementStep) || (self.maxReplicas - self.minReplicas) / self.replicaIncrementStep <= 63",message="more than 64 sizes: choose a larger replicaIncrementStep"
// +kubebuilder:validation:XValidation:rule="!has(self.replicaDiscreteValues) || self.minReplicas in self.replicaDiscreteValues && self.maxReplicas in self.replicaDiscreteValues",message="replicaDiscreteValues must contain minReplicas and maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.replicaDiscreteValues) || self.replicaDiscreteValues.all(v, v >= self.minReplicas && v <= self.maxReplicas)",message="replicaDiscreteValues has a size outside minReplicas and maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnscheduledReplicas) || !has(self.replicaIncrementStep) || self.maxUnscheduledReplicas >= self.replicaIncrementStep",message="maxUnscheduledReplicas is smaller than replicaIncrementStep"
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnscheduledReplicas) || !has(self.replicaDiscreteValues) || self.replicaDiscreteValues.all(v, v == self.minReplicas || self.replicaDiscreteValues.exists(u, u < v && v - u <= self.maxUnscheduledReplicas))",message="maxUnscheduledReplicas is smaller than the difference of two sizes"
// +kubebuilder:validation:XValidation:rule="!has(self.backoffMaxSeconds) || self.backoffMaxSeconds >= self.minStablePeriodSeconds",message="backoffMaxSeconds is smaller than minStablePeriodSeconds"
type ElasticPolicy struct {
	// MinReplicas is the number of pods that the job needs to run. They have the
	// job's priority class.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinReplicas int32 `json:"minReplicas"`

	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas int32 `json:"maxReplicas"`

	// ReplicaIncrementStep is the difference between one allowed size and the next.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ReplicaIncrementStep *int32 `json:"replicaIncrementStep,omitempty"`

	// ReplicaDiscreteValues are the allowed sizes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=10000
	ReplicaDiscreteValues []int32 `json:"replicaDiscreteValues,omitempty"`

	// GracefulShutdownTimeoutInSeconds is how long a pod has to write a checkpoint
	// after it was asked to end. It is the pods' termination grace period.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	GracefulShutdownTimeoutInSeconds int32 `json:"gracefulShutdownTimeoutInSeconds"`

	// ScalingTimeoutInSeconds is how long compute must have been idle before the job
	// grows into it.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	ScalingTimeoutInSeconds int32 `json:"scalingTimeoutInSeconds"`

	// FaultyScaleDownTimeoutInSeconds is how long pods of an increment can be without
	// a node or failing before the job gives the increment up.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	FaultyScaleDownTimeoutInSeconds int32 `json:"faultyScaleDownTimeoutInSeconds"`

	// MinStablePeriodSeconds is how long the job keeps a size before it grows again
	// after growth was taken back. The time doubles each time growth is taken back
	// within that time, up to BackoffMaxSeconds.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinStablePeriodSeconds int32 `json:"minStablePeriodSeconds"`

	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	BackoffMaxSeconds int32 `json:"backoffMaxSeconds"`

	// Growth is where the job grows: into nodes that exist, or also up to its quota where
	// no node has room, so that a cluster autoscaler adds nodes for its pending pods.
	// +optional
	// +kubebuilder:default=ExistingNodes
	Growth Growth `json:"growth,omitempty"`

	// MaxUnscheduledReplicas is how many pods of growth can be without a node at once, while
	// Growth is Provision. Without it, one step can.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxUnscheduledReplicas *int32 `json:"maxUnscheduledReplicas,omitempty"`

	// ProvisionTimeoutInSeconds is how long growth waits for nodes before it is withdrawn,
	// while Growth is Provision. It is withdrawn earlier where Kueue would evict it earlier,
	// by the timeout of waitForPodsReady.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ProvisionTimeoutInSeconds int32 `json:"provisionTimeoutInSeconds,omitempty"`
}

// Growth is where an ElasticJob grows.
// +kubebuilder:validation:Enum=ExistingNodes;Provision
type Growth string

// Where an ElasticJob grows.
const (
	GrowthExistingNodes Growth = "ExistingNodes" // into idle compute on nodes that exist
	GrowthProvision     Growth = "Provision"     // up to its quota: nodes may come for it
)

// Provisions reports whether the job asks for nodes.
func (p *ElasticPolicy) Provisions() bool { return p.Growth == GrowthProvision }

// ScaleConfig is the environment of the pods that start at one size, such as the
// batch size of each.
type ScaleConfig struct {
	// +required
	// +kubebuilder:validation:Minimum=1
	Replicas int32 `json:"replicas"`

	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []ScaleVariable `json:"env,omitempty"`
}

// ScaleVariable is an environment variable.
type ScaleVariable struct {
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// ElasticJobStatus is the observed state of an ElasticJob.
type ElasticJobStatus struct {
	// +optional
	State ElasticState `json:"state,omitempty"`

	// Replicas is how many pods have quota: 0 or an allowed size. Growth that waits for nodes
	// is not counted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ObservedPolicy is the policy that the status belongs to.
	// +optional
	ObservedPolicy *ElasticPolicy `json:"observedPolicy,omitempty"`

	// LastScaleTime is when Replicas changed last.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// GrowsAfter is when the job can grow again, after growth was taken back.
	// +optional
	GrowsAfter *metav1.Time `json:"growsAfter,omitempty"`

	// LastRetractionTime is when growth was taken back last.
	// +optional
	LastRetractionTime *metav1.Time `json:"lastRetractionTime,omitempty"`

	// Retractions is how often in a row growth was taken back soon.
	// +optional
	Retractions int32 `json:"retractions,omitempty"`

	// Minimum is how many pods of Replicas are not growth.
	// +optional
	Minimum int32 `json:"minimum,omitempty"`

	// Provisioning is the growth that waits for nodes. Empty while Growth is ExistingNodes.
	// +optional
	Provisioning *Provisioning `json:"provisioning,omitempty"`

	// ScaleEvents are the latest changes of Replicas, Minimum and the policy, the oldest first.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MaxItems=32
	ScaleEvents []ScaleEvent `json:"scaleEvents,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Provisioning is growth that waits for nodes.
type Provisioning struct {
	// UnscheduledReplicas is how many of its pods have no node.
	// +optional
	UnscheduledReplicas int32 `json:"unscheduledReplicas,omitempty"`

	// Since is when the first of them got its quota, and Until when it is withdrawn.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// After is when the job can ask for nodes again, after none came in time.
	// +optional
	After *metav1.Time `json:"after,omitempty"`

	// Timeouts is how often in a row no nodes came in time.
	// +optional
	Timeouts int32 `json:"timeouts,omitempty"`

	// Scheduled are the increments for all of whose pods nodes came, by number. Pods of
	// theirs that lose a node are as those of other growth.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	Scheduled []int32 `json:"scheduled,omitempty"`
}

// ElasticJobList is a list of ElasticJobs.
// +kubebuilder:object:root=true
type ElasticJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticJob `json:"items"`
}

// MaxElasticJobName is the longest name of an ElasticJob: the names of its Jobs are
// longer.
const MaxElasticJobName = 47

// The bounds of an ElasticPolicy.
const (
	MaxReplicas       = 10_000
	MaxSizes          = 64
	MaxTimeoutSeconds = 86_400
	MaxBackoffSeconds = 604_800
)

// DefaultElasticPolicy returns a policy with the defaults of the CRD, and no sizes.
func DefaultElasticPolicy() ElasticPolicy {
	return ElasticPolicy{
		GracefulShutdownTimeoutInSeconds: 30, ScalingTimeoutInSeconds: 60, FaultyScaleDownTimeoutInSeconds: 30,
		MinStablePeriodSeconds: 60, BackoffMaxSeconds: 3600, Growth: GrowthExistingNodes, ProvisionTimeoutInSeconds: 600,
	}
}
