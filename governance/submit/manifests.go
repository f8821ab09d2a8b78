package submit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Manifest is YAML for kubectl apply.
type Manifest struct {
	Kind Kind
	Text string
}

// Manifests returns the manifests of the team's kinds. Of an elastic task it returns the
// ElasticJob only, and of other tasks all but that.
func (p Plan) Manifests() ([]Manifest, error) {
	var all []Manifest
	for _, kind := range p.Team.Kinds {
		if (kind == ElasticJob) != (p.Elastic != nil) {
			continue
		}
		text, err := p.manifest(kind)
		if err != nil {
			return nil, manifestError(kind, err)
		}
		all = append(all, Manifest{kind, text})
	}
	return all, nil
}

func (p Plan) manifest(kind Kind) (string, error) {
	var object any
	switch kind {
	case Job:
		object = p.Job()
	case PyTorchJob:
		object = p.pyTorchJob()
	case RayJob:
		object = p.rayJob()
	case JobSet:
		object = p.jobSet()
	case ElasticJob:
		object = p.ElasticJob()
	default:
		return "", fmt.Errorf("unknown kind %q", kind)
	}
	m, err := writeManifest(kind, object)
	if err == nil {
		m, err = p.withScript(m)
	}
	return m.Text, err
}

type fields = map[string]any

// untyped returns an object of a kind whose Go types Kuota does not import.
func (p Plan) untyped(apiVersion string, kind Kind, spec fields) fields {
	return fields{"apiVersion": apiVersion, "kind": kind, "metadata": p.meta(), "spec": spec}
}

// pyTorchJob returns a PyTorchJob with one master and p.Pods - 1 workers.
func (p Plan) pyTorchJob() fields {
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

// rayJob returns a RayJob with one head and p.Pods - 1 workers. Kueue also counts the
// small pod that submits the job.
func (p Plan) rayJob() fields {
	cluster := fields{"headGroupSpec": fields{"rayStartParams": fields{}, "template": p.template("ray-head", "")}}
	if n := p.Pods - 1; n > 0 {
		cluster["workerGroupSpecs"] = []fields{{
			"groupName": "workers", "replicas": n, "minReplicas": n, "maxReplicas": n, "rayStartParams": fields{}, "template": p.template("ray-worker", ""),
		}}
	}
	spec := fields{"suspend": true, "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster}
	// The command belongs to the RayJob; its pods run Ray.
	if limit := p.retries(); limit != nil {
		spec["backoffLimit"] = *limit
	}
	spec["entrypoint"] = "python -c 'import ray; ray.init()'"
	switch {
	case p.Script != "":
		spec["entrypoint"] = strings.Join(p.command(), " ")
	case p.Command != "":
		spec["entrypoint"] = p.Command
	}
	clearCommand := func(group fields) {
		template := group["template"].(corev1.PodTemplateSpec)
		template.Spec.Containers[0].Command = nil
	}
	clearCommand(cluster["headGroupSpec"].(fields))
	if workers, ok := cluster["workerGroupSpecs"].([]fields); ok {
		clearCommand(workers[0])
	}
	return p.untyped("ray.io/v1", RayJob, spec)
}

// jobSet returns a JobSet with one Job of all pods.
func (p Plan) jobSet() fields {
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
