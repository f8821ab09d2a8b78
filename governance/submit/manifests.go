package submit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifest is YAML for Plan.Kubectl.
type Manifest struct {
	Kind Kind
	Text string
}

// Manifest returns the manifest of the object that the console creates.
func (p Plan) Manifest() (Manifest, error) { return p.manifest(p.Kind) }

// Manifests returns the manifests of the team's kinds. Of an elastic task it returns the
// ElasticJob only, and of other tasks all but that.
func (p Plan) Manifests() ([]Manifest, error) {
	var all []Manifest
	for _, kind := range p.Team.Kinds {
		if (kind == ElasticJob) != (p.Elastic != nil) {
			continue
		}
		one, err := p.manifest(kind)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (p Plan) manifest(kind Kind) (Manifest, error) {
	object, err := p.object(kind)
	if err != nil {
		return Manifest{}, manifestError(kind, err)
	}
	m, err := writeManifest(kind, object)
	if err != nil {
		return Manifest{}, err
	}
	return p.AfterScript(m)
}

func writeManifest(kind Kind, object any) (Manifest, error) {
	tree, err := toTree(object)
	if err != nil {
		return Manifest{}, manifestError(kind, err)
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return Manifest{}, manifestError(kind, err)
	}
	return Manifest{kind, string(text)}, nil
}

func manifestError(kind Kind, err error) error {
	return &governance.Error{Op: "write manifest", Message: fmt.Sprintf("The manifest of kind %s cannot be written.", kind), Err: err}
}

type fields = map[string]any

// untyped returns an object of a kind whose Go types Kuota does not import.
func (p Plan) untyped(apiVersion string, kind Kind, spec fields) (client.Object, error) {
	tree, err := toTree(fields{"apiVersion": apiVersion, "kind": kind, "metadata": p.meta(), "spec": spec})
	object, _ := tree.(map[string]any)
	return &unstructured.Unstructured{Object: object}, err
}

// pyTorchJob returns a PyTorchJob with one master and p.Pods - 1 workers.
func (p Plan) pyTorchJob() (client.Object, error) {
	policy := fields{"suspend": true}
	if limit := p.retries(); limit != nil {
		policy["backoffLimit"] = *limit
	}
	processes := p.Processes
	p.Processes = 0 // the operator sets the variable
	replicas := func(n int32) fields {
		return fields{"replicas": n, "restartPolicy": "OnFailure", "template": p.template("pytorch", "")}
	}
	specs := fields{"Master": replicas(1)}
	if p.Pods > 1 {
		specs["Worker"] = replicas(p.Pods - 1)
	}
	spec := fields{"runPolicy": policy, "pytorchReplicaSpecs": specs}
	if processes > 0 {
		spec["nprocPerNode"] = strconv.Itoa(int(processes))
	}
	return p.untyped("kubeflow.org/v1", PyTorchJob, spec)
}

// defaultEntrypoint runs in a RayJob without a command.
const defaultEntrypoint = "python -c 'import ray; ray.init()'"

// rayJob returns a RayJob with one head and p.Pods - 1 workers. Kueue also counts the
// small pod that submits the job.
func (p Plan) rayJob() (client.Object, error) {
	template := func(container string) corev1.PodTemplateSpec {
		t := p.template(container, "")
		t.Spec.Containers[0].Command = nil // it belongs to the RayJob; its pods run Ray
		return t
	}
	cluster := fields{"headGroupSpec": fields{"rayStartParams": fields{}, "template": template("ray-head")}}
	if n := p.Pods - 1; n > 0 {
		cluster["workerGroupSpecs"] = []fields{{
			"groupName": "workers", "replicas": n, "minReplicas": n, "maxReplicas": n, "rayStartParams": fields{}, "template": template("ray-worker"),
		}}
	}
	spec := fields{"suspend": true, "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster}
	if limit := p.retries(); limit != nil {
		spec["backoffLimit"] = *limit
	}
	spec["entrypoint"] = cmp.Or(p.Command, defaultEntrypoint)
	if p.Script != "" {
		spec["entrypoint"] = strings.Join(p.command(), " ")
	}
	return p.untyped("ray.io/v1", RayJob, spec)
}

// jobSet returns a JobSet with one Job of all pods.
func (p Plan) jobSet() (client.Object, error) {
	job := p.Job().Spec
	job.Suspend = nil // the JobSet's applies
	return p.untyped("jobset.x-k8s.io/v1alpha2", JobSet, fields{
		"suspend":        true,
		"replicatedJobs": []fields{{"name": "workers", "replicas": 1, "template": fields{"spec": job}}},
	})
}

// toTree converts an object to its JSON values without empty ones, such as unset times,
// statuses and lists. It keeps rayStartParams, which Ray requires even if empty.
func toTree(object any) (any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	return prune(tree), nil
}

func prune(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			v[name] = prune(v[name])
			if isEmpty(v[name]) && name != "rayStartParams" {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return tree
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
