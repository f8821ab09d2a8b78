package diagnostics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/enforcement"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// KindState is whether members can use a kind of job, and what is missing.
type KindState struct {
	enforcement.JobKind
	Installed, Integrated, Allowed Answer
}

// Usable reports whether the kind is installed, integrated and allowed.
func (k KindState) Usable() bool {
	return k.Installed == Yes && k.Integrated == Yes && k.Allowed == Yes
}

func answerOf(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// kinds collects which kinds the API server serves and the role of members allows. Whether
// Kueue manages them is added when its configuration is known.
func (l collector) kinds() {
	var role rbacv1.ClusterRole
	roleErr := l.service.Cluster.APIReader().Get(l.ctx, client.ObjectKey{Name: enforcement.MemberRole}, &role)
	for _, k := range enforcement.TaskKinds() {
		state := KindState{JobKind: k}
		_, err := l.service.Cluster.RESTMapping(schema.GroupKind{Group: k.Group, Kind: k.Kind})
		if err == nil || meta.IsNoMatchError(err) {
			state.Installed = answerOf(err == nil)
		}
		if roleErr == nil {
			state.Allowed = answerOf(k.AllowsCreation(role.Rules))
		}
		l.report.Kinds = append(l.report.Kinds, state)
	}
}

// integrate sets which kinds Kueue manages.
func integrate(kinds []KindState, integrations []string) {
	for i := range kinds {
		kinds[i].Integrated = answerOf(slices.Contains(integrations, kinds[i].Framework))
	}
}

// checkKinds checks for kinds that members may create and cannot use, and for those that
// are ready and that they may not create.
func checkKinds(s Observation) (findings []Finding) {
	var useless, denied []KindState
	for _, k := range s.Kinds {
		switch {
		case k.Allowed == Yes && (k.Integrated == No || k.Installed == No):
			useless = append(useless, k)
		case k.Allowed == No && k.Integrated == Yes && k.Installed == Yes:
			denied = append(denied, k)
		}
	}
	if len(useless) > 0 {
		findings = append(findings, Finding{
			ID: "kinds-useless", Title: "Members may create kinds that do not run here: " + kindNames(useless), Severity: SeverityWarning,
			Impact: "Their operator is not installed, or Kueue does not manage them: tasks of these kinds are rejected, or run without quota where the policy does not require a queue.",
			Fix:    memberKindsFix(s, useless, false),
		})
	}
	if len(denied) > 0 {
		findings = append(findings, Finding{
			ID: "kinds-denied", Title: "Members may not create " + kindNames(denied), Severity: SeverityInfo,
			Impact: "Kueue manages these kinds and the cluster has them, but the role " + enforcement.MemberRole + " does not allow them. Pages of teams offer no manifests of them.",
			Fix:    memberKindsFix(s, denied, true),
		})
	}
	return findings
}

func kindNames(kinds []KindState) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
	}
	return strings.Join(names, ", ")
}

// memberKindsFix returns the commands that let members create kinds, or no longer.
func memberKindsFix(s Observation, kinds []KindState, allow bool) string {
	if s.HelmRelease == "" {
		value, text := "-", ""
		if allow {
			value = "=true"
		}
		for _, k := range kinds {
			text += fmt.Sprintf("kubectl label clusterrole %s %s%s\n", k.MemberRoleOf(), enforcement.AggregateToMember, value)
		}
		return text
	}
	var chosen []string
	for _, k := range s.Kinds {
		in := slices.Contains(kinds, k)
		if in && allow || !in && k.Allowed == Yes {
			chosen = append(chosen, k.Kind)
		}
	}
	return applyFix(s, "rbac/member-kinds.yaml", "'memberKinds={"+strings.Join(chosen, ",")+"}'")
}

// ResourceCoverage returns the resources that ClusterQueues cover, by name, and
// those that nodes have or unfinished tasks request and no ClusterQueue covers.
// Without a ClusterQueue it returns none. A resource whose name is a prefix of
// a covered one is not returned as uncovered, because Kueue excludes resources
// by prefix.
func ResourceCoverage(ctx context.Context, reader client.Reader) (covered []string, uncovered []UncoveredResource, err error) {
	var queues kueue.ClusterQueueList
	var nodes corev1.NodeList
	var workloads kueue.WorkloadList
	if err := cluster.List(ctx, reader, &queues, &nodes, &workloads); err != nil {
		return nil, nil, err
	}
	if len(queues.Items) == 0 {
		return nil, nil, nil
	}
	covers := map[string]bool{}
	for i := range queues.Items {
		for _, group := range queues.Items[i].Spec.ResourceGroups {
			for _, resource := range group.CoveredResources {
				covers[string(resource)] = true
			}
		}
	}
	covered = slices.Sorted(maps.Keys(covers))
	covers[pods] = true // Kueue counts pods only in ClusterQueues that cover them
	named := map[string]int{}
	for i := range nodes.Items {
		for resource, quantity := range nodes.Items[i].Status.Allocatable {
			if !quantity.IsZero() {
				named[string(resource)] += 0
			}
		}
	}
	for i := range workloads.Items {
		if w := &workloads.Items[i]; !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			for resource := range requestedResources(w) {
				named[resource]++
			}
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(named)) {
		begins := func(name string) bool { return strings.HasPrefix(name, resource) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(covers)), begins) {
			uncovered = append(uncovered, UncoveredResource{Resource: resource, Tasks: named[resource]})
		}
	}
	return covered, uncovered, nil
}

// pods is the number of pods. Kueue adds it after it has excluded resources.
const pods = string(corev1.ResourcePods)

// requestedResources returns the resources that a task's pods request.
func requestedResources(w *kueue.Workload) map[string]bool {
	resources := map[string]bool{}
	for i := range w.Spec.PodSets {
		spec := &w.Spec.PodSets[i].Template.Spec
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for j := range containers {
				for _, list := range []corev1.ResourceList{containers[j].Resources.Requests, containers[j].Resources.Limits} {
					for resource, quantity := range list {
						if !quantity.IsZero() {
							resources[string(resource)] = true
						}
					}
				}
			}
		}
	}
	return resources
}
