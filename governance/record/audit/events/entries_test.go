package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	job  = `"objectRef": {"resource": "jobs", "apiGroup": "batch", "namespace": "ns", "name": "train"}`
	done = `"responseObject": {"metadata": {"uid": "u1", "resourceVersion": "7", "managedFields": [{"manager": "kubectl", "time": "2026-11-26T10:00:00Z"}]}}`
)

// event returns the JSON of an event by ada at 10:00:00.5 with more fields, of which the last
// of a name counts.
func event(fields ...string) string {
	return `{"stage": "ResponseComplete", "verb": "patch", "user": {"username": "ada"}, "sourceIPs": ["192.0.2.7", "10.0.0.1"], "responseStatus": {"code": 200}, "requestReceivedTimestamp": "2026-11-26T10:00:00.500000Z", ` + strings.Join(fields, ", ") + "}"
}

func patched(body string) string { return event(job, done, `"requestObject": `+body) }

func TestEntries(t *testing.T) {
	reader := Reader{Console: "system:serviceaccount:kuota-system:kuota", Controllers: []string{"system:serviceaccount:kueue-system:*", "operator"}}
	const deleted = `"verb": "delete", "responseObject": {"kind": "Status", "details": {"name": "train", "uid": "u1"}}`
	for name, c := range map[string]struct {
		event string
		want  string // action and UID by actor, and changes, each on a line; empty for nothing
	}{
		"deleted":                    {event(job, deleted), "delete-u1: delete u1 by ada, of a task []"},
		"still ending":               {event(job, `"verb": "delete", "responseObject": {"kind": "Job", "metadata": {"uid": "u2"}}`), "delete-u2: delete u2 by ada, of a task []"},
		"several":                    {event(job, `"verb": "deletecollection", "responseObject": {"kind": "JobList", "items": [{"metadata": {"uid": "u1"}}, {"metadata": {"uid": "u2"}}]}`), "delete-u1: delete u1 by ada, of a task []\ndelete-u2: delete u2 by ada, of a task []"},
		"by a controller":            {event(job, deleted, `"user": {"username": "system:serviceaccount:kube-system:ttl-after-finished-controller"}`), "delete-u1: delete u1 by system:serviceaccount:kube-system:ttl-after-finished-controller, of a task []"},
		"impersonated":               {event(job, deleted, `"impersonatedUser": {"username": "grace"}`), `delete-u1: delete u1 by ada, of a task ["impersonated user: grace"]`},
		"by the console":             {event(job, deleted, `"user": {"username": "system:serviceaccount:kuota-system:kuota"}`, `"impersonatedUser": {"username": "grace"}`), ""},
		"refused":                    {event(job, deleted, `"responseStatus": {"code": 403}`), ""},
		"received only":              {event(job, deleted, `"stage": "RequestReceived"`), ""},
		"without a response":         {event(job, `"verb": "delete"`), ""},
		"a pod of a log":             {event(`"objectRef": {"resource": "pods", "subresource": "eviction"}`, deleted), ""},
		"an allocation":              {event(`"objectRef": {"resource": "computeallocations", "apiGroup": "kuota.dev"}`, `"verb": "delete", "responseObject": {"details": {"name": "vision", "uid": "u3"}}`), "delete-u3: delete u3 by ada, ComputeAllocation vision of vision []"},
		"a released one":             {event(`"objectRef": {"resource": "computeallocations", "apiGroup": "kuota.dev"}`, `"verb": "delete", "responseObject": {"metadata": {"name": "vision", "uid": "u3", "annotations": {"kuota.dev/release": "true"}}}`), "delete-u3: release u3 by ada, ComputeAllocation vision of vision []"},
		"the policy":                 {event(`"objectRef": {"resource": "clusterpolicies", "apiGroup": "kuota.dev"}`, `"verb": "delete", "responseObject": {"details": {"name": "default", "uid": "u3"}}`), "delete-u3: delete u3 by ada, ClusterPolicy default of  []"},
		"an allocation that changed": {event(`"objectRef": {"resource": "computeallocations", "apiGroup": "kuota.dev"}`, done, `"requestObject": {"spec": {}}`), ""},
		"suspended":                  {patched(`{"spec": {"suspend": true}}`), `change-u1-7: update u1 by ada, of a task ["spec.suspend: set to true"]`},
		"another class":              {patched(`{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}}`), `change-u1-7: change-class u1 by ada, of a task ["metadata.labels.kueue.x-k8s.io/priority-class: set to high"]`},
		"a JSON patch":               {patched(`[{"op": "test", "path": "/spec/suspend", "value": false}, {"op": "replace", "path": "/metadata/labels/kueue.x-k8s.io~1priority-class", "value": "high"}]`), `change-u1-7: change-class u1 by ada, of a task ["metadata.labels.kueue.x-k8s.io/priority-class: set to high"]`},
		"no values that can be secret": {patched(`{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "SECRET", "note": "SECRET"}}, "spec": {"activeDeadlineSeconds": null, "template": {"spec": {"containers": [{"env": [{"value": "SECRET"}]}], "nodeName": "SECRET"}}}}`),
			`change-u1-7: update u1 by ada, of a task ["metadata.annotations changed" "spec.activeDeadlineSeconds: set to –" "spec.template changed"]`},
		"applied":              {patched(`{"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": true}}`), "change-u1-7: update u1 by ada, of a task []"},
		"created by apply":     {event(job, done, `"requestObject": {"spec": {}}`, `"responseStatus": {"code": 201}`), ""},
		"replaced":             {event(job, done, `"verb": "update"`, `"requestObject": {"spec": {"suspend": true}}`), "change-u1-7: update u1 by ada, of a task []"},
		"nothing changed":      {event(job, `"requestObject": {"spec": {"suspend": true}}`, `"responseObject": {"metadata": {"uid": "u1", "managedFields": [{"time": "2026-11-26T09:59:59Z"}, {"time": "2026-11-26T10:00:03Z", "subresource": "status"}]}}`), ""},
		"a status":             {event(done, `"objectRef": {"resource": "jobs", "apiGroup": "batch", "subresource": "status"}`, `"requestObject": {"status": {}}`), ""},
		"by Kueue":             {event(job, done, `"user": {"username": "system:serviceaccount:kueue-system:kueue"}`, `"requestObject": {"spec": {"suspend": true}}`), ""},
		"by an operator":       {event(job, done, `"user": {"username": "operator"}`, `"requestObject": {"spec": {"suspend": true}}`), ""},
		"by a node":            {event(job, done, `"user": {"username": "system:node:a"}`, `"requestObject": {"spec": {"suspend": true}}`), ""},
		"stopped":              {event(`"objectRef": {"resource": "workloads", "apiGroup": "kueue.x-k8s.io"}`, `"requestObject": {"spec": {"active": false}}`, `"responseObject": {"metadata": {"uid": "w1", "resourceVersion": "8", "ownerReferences": [{"uid": "u1", "controller": true}]}}`), `change-w1-8: stop u1 by ada, of a task ["spec.active: set to false"]`},
		"resumed, a pod group": {event(`"objectRef": {"resource": "workloads", "apiGroup": "kueue.x-k8s.io"}`, `"requestObject": {"spec": {"active": true}}`, `"responseObject": {"metadata": {"uid": "w1", "resourceVersion": "8", "ownerReferences": [{"uid": "u1"}, {"uid": "u2"}]}}`), `change-w1-8: resume u1 by ada, of a task ["spec.active: set to true"]`},
		"another field of it":  {event(done, `"objectRef": {"resource": "workloads", "apiGroup": "kueue.x-k8s.io"}`, `"requestObject": {"metadata": {"labels": {}}}`), ""},
		"elastic, stopped":     {event(done, `"objectRef": {"resource": "elasticjobs", "apiGroup": "kuota.dev"}`, `"requestObject": {"spec": {"suspend": true}}`), `change-u1-7: stop u1 by ada, of a task ["spec.suspend: set to true"]`},
		"elastic, resumed":     {event(done, `"objectRef": {"resource": "elasticjobs", "apiGroup": "kuota.dev"}`, `"requestObject": {"spec": {"suspend": false}}`), `change-u1-7: resume u1 by ada, of a task ["spec.suspend: set to false"]`},
		"resized":              {event(done, `"objectRef": {"resource": "elasticjobs", "apiGroup": "kuota.dev"}`, `"requestObject": {"spec": {"elasticPolicy": {"maxReplicas": 8}}}`), `change-u1-7: resize u1 by ada, of a task ["spec.elasticPolicy.maxReplicas: set to 8"]`},
		"scaled":               {event(done, `"verb": "update"`, `"objectRef": {"resource": "deployments", "apiGroup": "apps", "subresource": "scale"}`, `"requestObject": {"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 3}}`), `change-u1-7: scale u1 by ada, of a task ["spec.replicas: set to 3"]`},
	} {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(c.event), &e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, entry := range reader.Entries(&e) {
			of := entry.Kind + " " + entry.Name + " of " + entry.Team
			if entry.Audited {
				of = "of a task"
			}
			got = append(got, fmt.Sprintf("%s: %s %s by %s, %s %q", entry.ID, entry.Action, entry.UID, entry.Actor, of, entry.Changes))
			if entry.Source != history.SourceOutside || entry.Outcome != history.Succeeded || entry.Address != "192.0.2.7" || entry.At.Format("15:04:05.0") != "10:00:00.5" {
				t.Errorf("%s: got %+v", name, entry)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
