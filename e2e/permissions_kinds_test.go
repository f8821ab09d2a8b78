package e2e_test

import (
	"context"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/kueue/enforcement"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// service is an object that serves, and is a task by its label.
const service = `
apiVersion: VERSION
kind: KIND
metadata: {name: serves, namespace: ` + kindSpace + `, labels: {kueue.x-k8s.io/queue-name: main}}
spec: {replicas: REPLICAS, selector: {matchLabels: {a: serves}}, template: {metadata: {labels: {a: serves}}, spec: {nodeSelector: {no: where}, containers: [{name: a, image: a}]}}}
`

// servicesCheck returns a check of services of these kinds, which begins with this many
// replicas.
func servicesCheck(function string, replicas int, run func(r *ruleTest, ctx context.Context, resource string) error, resources ...string) ruleCheck {
	check := ruleCheck{function: function, remove: []string{"-n", kindSpace}}
	for _, resource := range resources {
		check.remove = append(check.remove, resource+"/serves")
		name, group, _ := strings.Cut(resource, ".")
		kind := map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet", "leaderworkersets": "LeaderWorkerSet"}[name]
		check.prepare += "---" + strings.NewReplacer("VERSION", group+"/v1", "KIND", kind, "REPLICAS", fmt.Sprint(replicas)).Replace(service)
	}
	check.run = func(r *ruleTest, ctx context.Context) error {
		for _, resource := range resources {
			if err := run(r, ctx, resource); err != nil {
				return err
			}
		}
		return nil
	}
	return check
}

// showsService checks that a service is a task.
func (r *ruleTest) showsService(ctx context.Context, resource string) error {
	kind, _, _ := strings.Cut(resource, "s.")
	_, err := r.get(ctx, r.admin, "/tasks/"+kindSpace+"/"+kind+"/serves")
	return err
}

// resumes checks that a member gives a service a replica.
func (r *ruleTest) resumes(ctx context.Context, resource string) error {
	if out, err := r.c.TryKubectl("", "get", resource, "serves", "-n", kindSpace, "-o", "jsonpath={.spec.replicas}"); err != nil || out == "1" { // by an earlier attempt
		return err
	}
	return r.act(ctx, r.ada, kindSpace, resource, "serves", "resume")
}

// remembers checks that a service that a member stops keeps its number of replicas.
func (r *ruleTest) remembers(ctx context.Context, resource string) error {
	replicas := func() (string, error) {
		return r.c.TryKubectl("", "get", resource, "serves", "-n", kindSpace, "-o", `jsonpath={.spec.replicas} {.metadata.annotations.kuota\.dev/stopped-replicas}`)
	}
	if out, err := replicas(); err != nil || out == "0 1" { // by an earlier attempt
		return err
	}
	if err := r.act(ctx, r.ada, kindSpace, resource, "serves", "stop"); err != nil {
		return err
	}
	out, err := replicas()
	if err == nil && out != "0 1" {
		err = fmt.Errorf("it has the replicas and the annotation %q, want 0 and 1", out)
	}
	return err
}

// submitsServices returns a check that a member submits services of these kinds.
func submitsServices(resources ...string) ruleCheck {
	check := ruleCheck{function: "a member submits services", forget: true, setUp: allowsKinds(servicesFrameworks, "deployments", "statefulsets", "leaderworkersets"), remove: []string{"-n", ruleSpace}}
	for _, resource := range resources {
		check.remove = append(check.remove, resource+"/submitted")
	}
	check.run = func(r *ruleTest, ctx context.Context) error {
		for _, resource := range resources {
			page, changes := "service", map[string]string{"name": "submitted", "image": "example.com/serve:1", "accelerators": "1"}
			switch name, _, _ := strings.Cut(resource, "."); name {
			case "statefulsets":
				page = "notebook"
			case "leaderworkersets":
				changes["pods"] = "2"
			}
			if err := r.submit(ctx, r.ada, "/teams/"+ruleTeam+"/submit/"+page, "#submit-form", changes); err != nil {
				return err
			}
		}
		return nil
	}
	return check
}

// submitsKind returns a check that a member submits a task of a kind.
func submitsKind(kind, framework, resource string) ruleCheck {
	name, _, _ := strings.Cut(resource, ".")
	return ruleCheck{
		function: "a member submits a " + kind, forget: true, setUp: allowsKinds([]string{framework}, name), remove: []string{"-n", ruleSpace, resource, "submitted"},
		run: func(r *ruleTest, ctx context.Context) error {
			return r.submit(ctx, r.ada, "/teams/"+ruleTeam+"/submit", "#submit-form", map[string]string{"name": "submitted", "image": "example.com/train:1", "accelerators": "1", "kind": kind})
		},
	}
}

// startsAfter returns a check that a task of a kind loses its gate, since the task before it has
// succeeded.
func startsAfter(resource string) ruleCheck {
	replace := strings.NewReplacer("SPACE", kindSpace, "GROUP", strings.SplitN(resource, ".", 2)[1], "KIND", kindOf(resource)).Replace
	const workload = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: NAME, namespace: SPACE MORE}, spec: {active: true, queueName: main, priority: 0, podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}]}}"
	return ruleCheck{
		function: "a " + resource + " starts after another task",
		setUp: func(r *ruleTest) {
			r.c.Kubectl(r.t, "", "delete", "-n", kindSpace, "--ignore-not-found", resource+"/after", "workload/before", "workload/after")
			r.c.Apply(r.t, strings.NewReplacer("NAME", "before", " MORE", "").Replace(replace(workload)))
			r.c.Kubectl(r.t, "", "patch", "workload", "before", "-n", kindSpace, "--subresource=status", "--type=merge", "-p", `{"status": {"conditions": [{"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
			gate := ", annotations: {kueue.x-k8s.io/admission-gated-by: kuota.dev/after-ok-" + r.c.Kubectl(r.t, "", "get", "workload", "before", "-n", kindSpace, "-o", "jsonpath={.metadata.uid}") + "}"
			r.c.Apply(r.t, replace("{apiVersion: GROUP/v1, kind: KIND, metadata: {name: after, namespace: SPACE, labels: {kueue.x-k8s.io/queue-name: main}"+gate+"}, spec: {}}"))
			owner := r.c.Kubectl(r.t, "", "get", resource, "after", "-n", kindSpace, "-o", "jsonpath=apiVersion: {.apiVersion}, kind: {.kind}, name: {.metadata.name}, uid: {.metadata.uid}")
			r.c.Apply(r.t, strings.NewReplacer("NAME", "after", " MORE", gate+", ownerReferences: [{"+owner+", controller: true}]").Replace(replace(workload)))
		},
		run: func(r *ruleTest, _ context.Context) error {
			gate, err := r.c.TryKubectl("", "get", resource, "after", "-n", kindSpace, "-o", `jsonpath={.metadata.annotations.kueue\.x-k8s\.io/admission-gated-by}`)
			if err == nil && gate != "" {
				err = fmt.Errorf("it has the gate %s", gate)
			}
			return err
		},
	}
}

var servicesFrameworks = []string{"deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"}

// allowsKinds returns a function that adds integrations to Kueue's configuration, and lets
// members create their resources. Kueue itself need not restart: the team's policies only
// require a queue.
func allowsKinds(frameworks []string, resources ...string) func(*ruleTest) {
	return func(r *ruleTest) { r.allowKinds(frameworks, resources...) }
}

func (r *ruleTest) allowKinds(added []string, resources ...string) {
	r.t.Helper()
	key := client.ObjectKey{Namespace: "kueue-system", Name: "kueue-manager-config"}
	var config corev1.ConfigMap
	must(r.t, r.c.Client.Get(r.t.Context(), key, &config))
	for name, text := range config.Data {
		const frameworks = "frameworks:\n"
		before, after, found := strings.Cut(text, frameworks)
		if !found || strings.Contains(text, "- "+added[len(added)-1]) {
			continue
		}
		indent := after[:strings.Index(after, "-")]
		for _, framework := range added {
			after = indent + "- " + framework + "\n" + after
		}
		config.Data[name] = before + frameworks + after
		must(r.t, r.c.Client.Update(r.t.Context(), &config))
		r.t.Cleanup(func() {
			must(r.t, r.c.Client.Get(context.Background(), key, &config))
			config.Data[name] = text
			must(r.t, r.c.Client.Update(context.Background(), &config))
		})
	}
	for _, resource := range resources {
		r.c.Kubectl(r.t, "", "label", "clusterrole", "kuota-team-member-"+resource, "kuota.dev/aggregate-to-team-member=true", "--overwrite")
	}
}

// listsKind and deletesKind stand for checks of the kinds of a rule: see kindCheck.
var (
	listsKind   = ruleCheck{function: "jobs of each kind are tasks"}
	deletesKind = ruleCheck{function: "a task of each kind is deleted"}
)

// kindCheck returns the check of a rule about kinds that Kueue manages; of other rules,
// check.
func kindCheck(rule rule, check ruleCheck) ruleCheck {
	deleted := check.function == deletesKind.function
	if !deleted && check.function != listsKind.function {
		return check
	}
	var each []func(*ruleTest, context.Context) error
	for _, resource := range rule.Resources {
		resource = strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")
		check.kinds = append(check.kinds, resource)
		if deleted {
			user := "admin"
			if kindOf(resource) == "" {
				user = "ada" // kuota-admin may not delete these
			}
			each = append(each, deletes(user, kindSpace, resource, objectName(resource)))
		} else {
			each = append(each, shows("admin", "/tasks/"+kindSpace+"/"+strings.ToLower(kindOf(resource))+"/"+objectName(resource), objectName(resource)))
		}
	}
	check.run = func(r *ruleTest, ctx context.Context) error {
		for _, one := range each {
			if err := one(r, ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return check
}

// kindOf returns the kind of a resource.group that is watched for tasks; empty for pods
// and for kinds whose pods are the tasks.
func kindOf(resource string) string {
	for _, k := range enforcement.JobKinds() {
		if k.Resource+"."+k.Group == resource && k.Group != "apps" {
			return k.Kind
		}
	}
	return ""
}

// objectName returns the name of the object of a kind in kindSpace.
func objectName(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return "one-of-" + name
}

// createKinds creates kindSpace, and CRDs of all kinds that Kueue manages and the
// cluster does not have. Kueue does not watch them here.
func (r *ruleTest) createKinds() {
	r.t.Helper()
	r.c.Apply(r.t, strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: SPACE}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: SPACE} # with a queue, the roles of users count
spec: {clusterQueue: none}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edits, namespace: SPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada@example.com}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sees, namespace: SPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada@example.com}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kuota-elastic, namespace: SPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-elastic}
subjects: [{kind: ServiceAccount, name: kuota, namespace: kuota-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: serves, namespace: SPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member-leaderworkersets}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada@example.com}]
`, "SPACE", kindSpace))
	var names []string
	for _, k := range enforcement.JobKinds() {
		if k.Group == "batch" || k.Group == "apps" {
			continue
		}
		names = append(names, "crd/"+k.Resource+"."+k.Group)
		r.c.Apply(r.t, strings.NewReplacer("RESOURCE", k.Resource, "SINGULAR", strings.ToLower(k.Kind), "GROUP", k.Group, "KIND", k.Kind).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: RESOURCE.GROUP, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: KIND, plural: RESOURCE, singular: SINGULAR}
  versions: # of JobSets there is no v1
  - &version
    name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
  - {<<: *version, name: v1alpha2, storage: false}
`))
	}
	r.t.Cleanup(func() { _, _ = r.c.TryKubectl("", append([]string{"delete", "--wait=false"}, names...)...) })
	r.c.Kubectl(r.t, "", append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, names...)...)
}

// createObject creates the object of a kind in kindSpace. Kinds whose pods are the tasks
// have a Workload.
func (r *ruleTest) createObject(resource string) {
	r.t.Helper()
	name, group, _ := strings.Cut(resource, ".")
	replace := strings.NewReplacer("NAME", objectName(resource), "SPACE", kindSpace, "GROUP", group, "KIND", kindOf(resource)).Replace
	var manifest string
	switch name {
	case "pods":
		manifest = "{apiVersion: v1, kind: Pod, metadata: {name: NAME, namespace: SPACE}, spec: {nodeSelector: {no: where}, containers: [{name: a, image: a}]}}"
	case "statefulsets":
		manifest = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NAME, namespace: SPACE}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}"
	default: // its label makes it a task, and it has no Workload
		r.c.Apply(r.t, replace("{apiVersion: GROUP/v1, kind: KIND, metadata: {name: NAME, namespace: SPACE, labels: {kueue.x-k8s.io/queue-name: main}}}"))
		return
	}
	r.c.Kubectl(r.t, "", "delete", "workload", objectName(resource), "-n", kindSpace, "--ignore-not-found")
	r.c.Apply(r.t, replace(manifest))
	owner := r.c.Kubectl(r.t, "", "get", resource, objectName(resource), "-n", kindSpace, "-o", "jsonpath=apiVersion: {.apiVersion}, kind: {.kind}, name: {.metadata.name}, uid: {.metadata.uid}")
	owner = fmt.Sprintf("{%s, controller: %t}", owner, name == "statefulsets")
	r.c.Apply(r.t, replace("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: NAME, namespace: SPACE, ownerReferences: ["+owner+"]}, spec: {active: false, queueName: main, priority: 0, podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}]}}"))
}
