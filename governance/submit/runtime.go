package submit

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// processesVariable is the environment variable by which torchrun gets the number of
// processes per node.
const processesVariable = "PET_NPROC_PER_NODE"

// sharedMemoryPath is where the emptyDir in memory is mounted.
const sharedMemoryPath = "/dev/shm"

// maxListed bounds variables, and volumes, of one request.
const maxListed = 100

// Runtime is what the containers of a task get besides resources. Secrets, claims and the
// service account are named, and never read.
type Runtime struct {
	Env            []corev1.EnvVar
	EnvFrom        []corev1.EnvFromSource
	Volumes        []ClaimMount
	SharedMemory   *resource.Quantity // of an emptyDir in memory at /dev/shm; nil for the runtime's default
	ServiceAccount string             // empty for the default of the namespace
	Processes      int32              // per pod, for torchrun; 0 if not set
	Tries          int32              // before a Job fails, the first included; 0 for the default of Kubernetes
}

// ClaimMount mounts a PersistentVolumeClaim.
type ClaimMount struct {
	Path, Claim string
	ReadOnly    bool
}

func (r Runtime) validate() (wrong governance.FieldErrors) {
	named := map[string]bool{processesVariable: r.Processes > 0}
	for _, v := range r.Env {
		field := "env"
		if v.ValueFrom != nil {
			field = "secrets"
		}
		switch {
		case len(validation.IsEnvVarName(v.Name)) > 0:
			wrong.Addf(field, "%q is no name of a variable: use letters, digits, _, - and ., and start with a letter", v.Name)
		case named[v.Name]:
			wrong.Addf(field, "%s is set twice", v.Name)
		}
		named[v.Name] = true
		if v.ValueFrom != nil {
			ref := v.ValueFrom.SecretKeyRef
			if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 || len(validation.IsConfigMapKey(ref.Key)) > 0 {
				wrong.Addf(field, "%s/%s is no Secret with a key", ref.Name, ref.Key)
			}
		}
	}
	for _, from := range r.EnvFrom {
		if len(validation.IsDNS1123Subdomain(from.SecretRef.Name)) > 0 {
			wrong.Addf("secrets", "%q is no name of a Secret", from.SecretRef.Name)
		}
	}
	if len(r.Env)+len(r.EnvFrom) > maxListed {
		wrong.Addf("env", "at most %d variables and Secrets can be given", maxListed)
	}
	mounted := map[string]bool{}
	if r.SharedMemory != nil {
		mounted[sharedMemoryPath] = true
		if r.SharedMemory.Sign() <= 0 {
			wrong.Add("sharedMemory", "must be more than 0")
		}
	}
	for _, v := range r.Volumes {
		switch {
		case !path.IsAbs(v.Path) || path.Clean(v.Path) != v.Path || v.Path == "/" || strings.Contains(v.Path, ":"):
			wrong.Addf("volumes", "%q is no path to mount at, such as /data", v.Path)
		case mounted[v.Path]:
			wrong.Addf("volumes", "%s is mounted twice", v.Path)
		case len(validation.IsDNS1123Subdomain(v.Claim)) > 0:
			wrong.Addf("volumes", "%q is no name of a PersistentVolumeClaim", v.Claim)
		}
		mounted[v.Path] = true
	}
	if len(r.Volumes) > maxListed {
		wrong.Addf("volumes", "at most %d volumes can be given", maxListed)
	}
	if r.ServiceAccount != "" && len(validation.IsDNS1123Subdomain(r.ServiceAccount)) > 0 {
		wrong.Add("serviceAccount", "use lower-case letters, digits, hyphens and dots")
	}
	return wrong
}

// addTo sets the fields of a pod with one container.
func (r Runtime) addTo(spec *corev1.PodSpec) {
	c := &spec.Containers[0]
	c.Env, c.EnvFrom = append(c.Env, r.Env...), append(c.EnvFrom, r.EnvFrom...)
	if r.Processes > 0 {
		c.Env = append(c.Env, corev1.EnvVar{Name: processesVariable, Value: strconv.Itoa(int(r.Processes))})
	}
	mount := func(name, at string, readOnly bool, source corev1.VolumeSource) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: readOnly})
	}
	for i, v := range r.Volumes {
		mount(fmt.Sprintf("volume-%d", i+1), v.Path, v.ReadOnly, corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Claim, ReadOnly: v.ReadOnly},
		})
	}
	if r.SharedMemory != nil {
		size := r.SharedMemory.DeepCopy()
		mount("shared-memory", sharedMemoryPath, false, corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size},
		})
	}
	spec.ServiceAccountName = r.ServiceAccount
}

// retries returns the backoffLimit of a job; nil for the default.
func (r Runtime) retries() *int32 {
	if r.Tries == 0 {
		return nil
	}
	return new(r.Tries - 1)
}

// HyperPodLeavesOut returns the values of a request that HyperPodCommand does not carry.
func (p Plan) HyperPodLeavesOut() (left []string) {
	add := func(name string, set bool) {
		if set {
			left = append(left, name)
		}
	}
	add("the time limit", p.TimeLimit > 0)
	add("the environment", len(p.Env)+len(p.EnvFrom) > 0)
	add("volumes", len(p.Volumes) > 0)
	add("shared memory", p.SharedMemory != nil)
	add("the service account", p.ServiceAccount != "")
	add("tries", p.Tries > 0)
	add("variables by size", len(p.ScaleConfig) > 0)
	add("nodes that are asked for", p.Elastic != nil && p.Elastic.Provisions())
	return left
}
