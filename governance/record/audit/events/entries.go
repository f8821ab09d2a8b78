package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// Reader reads audit events.
type Reader struct {
	// Console is the user name of the console, which records what it does by itself.
	Console string
	// Controllers are user names whose changes of objects are no news: those of Kueue and of
	// the controllers of jobs. What they delete is.
	Controllers []string
}

// Entries returns what an event says about tasks and allocations; nothing for an event of
// other objects, that failed, or that changed nothing.
//
// Who is logged is the user who authenticated, not the one that they impersonated.
func (r Reader) Entries(e *auditv1.Event) []history.Activity {
	if e.Stage != auditv1.StageResponseComplete || e.ResponseStatus == nil || e.ResponseStatus.Code >= 300 || e.ObjectRef == nil || e.User.Username == r.Console {
		return nil
	}
	entry := history.Activity{At: e.RequestReceivedTimestamp.UTC(), Actor: e.User.Username, Source: history.SourceOutside, Outcome: history.Succeeded}
	if len(e.SourceIPs) > 0 {
		entry.Address = e.SourceIPs[0]
	}
	if as := e.ImpersonatedUser; as != nil {
		entry.Changes = []string{"impersonated user: " + as.Username}
	}
	switch e.Verb {
	case "delete", "deletecollection":
		if e.ObjectRef.Subresource == "" {
			return deletions(e, entry)
		}
	case "patch", "update":
		created := e.ResponseStatus.Code == 201 // by server-side apply
		if !created && !r.isController(e.User.Username) {
			return changes(e, entry)
		}
	}
	return nil
}

// isController reports whether a user is a part of Kubernetes or a configured controller.
func (r Reader) isController(user string) bool {
	if strings.HasPrefix(user, "system:") && !strings.HasPrefix(user, "system:serviceaccount:") || strings.HasPrefix(user, "system:serviceaccount:kube-system:") {
		return true
	}
	return slices.ContainsFunc(r.Controllers, func(c string) bool {
		group, all := strings.CutSuffix(c, ":*")
		return user == c || all && strings.HasPrefix(user, group+":")
	})
}

// response is what matters of the object, the list or the Status that a request returned.
type response struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta     `json:"metadata"`
	Details  *metav1.StatusDetails `json:"details"`
	Items    []response            `json:"items"`
}

// decode returns false for a response that was not logged.
func decode(unknown *runtime.Unknown) (r response, ok bool) {
	return r, unknown != nil && json.Unmarshal(unknown.Raw, &r) == nil
}

// deletions returns an entry for each deleted object. A Status has the UID in its details, an
// object that still ends in its metadata.
func deletions(e *auditv1.Event, entry history.Activity) (entries []history.Activity) {
	answer, ok := decode(e.ResponseObject)
	if !ok {
		return nil
	}
	objects := answer.Items
	if e.Verb == "delete" {
		objects = []response{answer}
	}
	for _, o := range objects {
		uid, name := string(o.Metadata.UID), o.Metadata.Name
		if o.Details != nil {
			uid, name = string(o.Details.UID), o.Details.Name
		}
		if uid == "" {
			continue
		}
		deleted := entry
		deleted.ID, deleted.Action, deleted.UID = history.DeletionID(uid), string(audit.Delete), uid
		switch kind := kuotaKinds[e.ObjectRef.Resource]; {
		case e.ObjectRef.APIGroup != v1alpha1.GroupVersion.Group || kind == "":
			deleted.Audited = true
		case kind == "ComputeAllocation":
			deleted.Kind, deleted.Name, deleted.Team = kind, name, name
			deleted.Action = string(audit.OfDeletion(o.Metadata.Annotations))
		default:
			deleted.Kind, deleted.Name = kind, name
		}
		entries = append(entries, deleted)
	}
	return entries
}

// kuotaKinds are objects of the cluster. The keeper of versions records their changes, with
// their persons.
var kuotaKinds = map[string]string{"computeallocations": "ComputeAllocation", "clusterpolicies": "ClusterPolicy"}

// changes returns the entry of a change of a task: of the object itself, its size, or what its
// Workload says about it.
func changes(e *auditv1.Event, entry history.Activity) []history.Activity {
	answer, ok := decode(e.ResponseObject)
	if !ok || e.ObjectRef.APIGroup == v1alpha1.GroupVersion.Group && kuotaKinds[e.ObjectRef.Resource] != "" {
		return nil
	}
	values := requested(e)
	uid := string(answer.Metadata.UID)
	action := audit.Update
	_, class := values["metadata.labels."+constants.WorkloadPriorityClassLabel]
	active, suspend := values["spec.active"], values["spec.suspend"]
	switch ofWorkload, elastic := e.ObjectRef.Resource == "workloads", e.ObjectRef.Resource == "elasticjobs"; {
	case ofWorkload && (active == "true" || active == "false"):
		action = audit.Switching(active == "true")
		if owner := ownerOf(answer.Metadata); owner != "" {
			uid = owner
		}
	case ofWorkload:
		return nil
	case e.ObjectRef.Subresource == "scale": // with the metadata of the scaled object
		if action = audit.Scale; elastic {
			action = audit.Resize
		}
	case e.ObjectRef.Subresource != "":
		return nil // such as status
	case elastic && (suspend == "true" || suspend == "false"):
		action = audit.Switching(suspend == "false")
	case class:
		action = audit.ChangeClass
	case elastic && slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(path string) bool {
		return strings.HasPrefix(path, "spec.elasticPolicy.") || strings.HasPrefix(path, "spec.scaleConfig")
	}):
		action = audit.Resize
	}
	if uid == "" || e.ObjectRef.Subresource == "" && unchanged(answer.Metadata, e.RequestReceivedTimestamp.Time) {
		return nil
	}
	// A request that changes nothing returns the version of the last change.
	entry.ID = fmt.Sprintf("change-%s-%s", answer.Metadata.UID, answer.Metadata.ResourceVersion)
	entry.Action, entry.UID, entry.Audited = string(action), uid, true
	entry.Changes = append(entry.Changes, lines(values)...)
	return []history.Activity{entry}
}

// ownerOf returns the UID of the object that a Workload is of; empty for none.
func ownerOf(workload metav1.ObjectMeta) string {
	if owner := metav1.GetControllerOf(&workload); owner != nil {
		return string(owner.UID)
	}
	if len(workload.OwnerReferences) > 0 {
		return string(workload.OwnerReferences[0].UID)
	}
	return ""
}

// unchanged reports whether a request left the object as it was, such as a GitOps program that
// applies the same again: no manager of fields changed any since, in whole seconds.
func unchanged(o metav1.ObjectMeta, received time.Time) bool {
	for _, m := range o.ManagedFields {
		if m.Subresource == "" && m.Time != nil && !m.Time.Time.Before(received.Truncate(time.Second)) {
			return false
		}
	}
	return len(o.ManagedFields) > 0
}

// requested returns the values that a request set, by path; none for one that has the whole
// object, of which only the API server knows what it changed.
func requested(e *auditv1.Event) map[string]string {
	values := map[string]string{}
	if e.RequestObject == nil || e.Verb == "update" && e.ObjectRef.Subresource != "scale" {
		return values
	}
	var body any
	if err := json.Unmarshal(e.RequestObject.Raw, &body); err != nil {
		return values
	}
	switch body := body.(type) {
	case map[string]any:
		_, typed := body["apiVersion"]
		if _, whole := body["kind"]; typed && whole && e.ObjectRef.Subresource != "scale" { // applied by the server
			return values
		}
		for _, top := range []string{"metadata", "spec"} {
			if v, set := body[top]; set {
				flatten(top, v, values)
			}
		}
	case []any: // a JSON patch
		for _, operation := range body {
			if o, ok := operation.(map[string]any); ok && o["op"] != "test" {
				path, _ := o["path"].(string)
				path = strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(strings.TrimPrefix(path, "/"))
				flatten(path, o["value"], values)
			}
		}
	}
	return values
}

func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			flatten(path+"."+name, v, into)
		}
	case string:
		into[path] = value
	case nil:
		into[path] = "–"
	default:
		text, err := json.Marshal(value)
		if err == nil {
			into[path] = string(text)
		}
	}
}

// shown are the beginnings of paths whose values are recorded. Of all others, such as commands
// and environments, only the path is, because their values can contain secrets.
var shown = []string{
	"metadata.labels.kueue.x-k8s.io/", "spec.active", "spec.suspend", "spec.parallelism", "spec.completions", "spec.replicas", "spec.elasticPolicy.", "spec.activeDeadlineSeconds",
}

// ignored are the beginnings of paths that are no news: copies of the other values.
var ignored = []string{"metadata.annotations.kubectl.kubernetes.io/last-applied-configuration", "metadata.resourceVersion", "metadata.uid", "metadata.name", "metadata.creationTimestamp", "metadata.managedFields"}

// lines returns the lines of an entry, one for each value.
func lines(values map[string]string) (found []string) {
	begins := func(path string, with []string) bool {
		return slices.ContainsFunc(with, func(beginning string) bool {
			return path == beginning || strings.HasPrefix(path, beginning) && (strings.HasSuffix(beginning, "/") || strings.HasSuffix(beginning, ".") || path[len(beginning)] == '.')
		})
	}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		line := fmt.Sprintf("%s: set to %s", path, values[path])
		if !begins(path, shown) {
			parts := strings.SplitN(path, ".", 3)
			line = strings.Join(parts[:min(2, len(parts))], ".") + " changed"
		}
		if !begins(path, ignored) && !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	return found
}
