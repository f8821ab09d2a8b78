package audit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// eventLimit bounds the creation of an event, and noteLimit its text, in bytes
	// (Kubernetes allows 1,024).
	eventLimit = 5 * time.Second
	noteLimit  = 1000
	// eventNamespace is the namespace of events of cluster-scoped objects.
	eventNamespace = metav1.NamespaceDefault
)

// Recorder records changes.
type Recorder struct {
	Cluster *cluster.Cluster
	Log     *slog.Logger
}

// Change is one change that a user made or tried to make.
type Change struct {
	User     governance.User
	Action   string        // "create", "update" or "delete"
	Object   client.Object // as it is afterwards
	Old, New any           // its spec before and after; nil for none
	Reason   string        // of the user; empty for none
	Err      error         // why it failed; nil if it succeeded
	// Discriminator makes the event's name unique among changes of the same
	// generation, such as those of labels; else empty.
	Discriminator string
}

// Record logs a change, and creates the event in the background.
func (r *Recorder) Record(c Change) {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(c.Object, cluster.Scheme); err == nil {
		kind = gvk.Kind
	}
	changes := diff(c.Old, c.New)
	entry := r.Log.With("audit", true, "user", c.User.Name, "from", c.User.From, "action", c.Action,
		"kind", kind, "name", c.Object.GetName(), "namespace", c.Object.GetNamespace(), "uid", c.Object.GetUID(), "changes", changes)
	if c.Reason != "" {
		entry = entry.With("reason", c.Reason)
	}
	switch {
	case governance.KindOf(c.Err) == governance.Unavailable:
		entry.Warn("change with unknown outcome", "error", c.Err)
		return
	case c.Err != nil:
		entry.Warn("change refused", "error", c.Err)
		return
	}
	entry.Info("changed")
	go r.event(c, changes)
}

// event creates a Kubernetes Event on the object.
func (r *Recorder) event(c Change, changes []string) {
	ctx, cancel := context.WithTimeout(context.Background(), eventLimit)
	defer cancel()
	reference := corev1.ObjectReference{Name: c.Object.GetName(), Namespace: c.Object.GetNamespace(), UID: c.Object.GetUID(), ResourceVersion: c.Object.GetResourceVersion()}
	if gvk, err := apiutil.GVKForObject(c.Object, cluster.Scheme); err == nil {
		reference.APIVersion, reference.Kind = gvk.GroupVersion().String(), gvk.Kind
	}
	past := map[string]string{"create": "Created", "update": "Changed", "delete": "Deleted"}[c.Action]
	note := past + " by " + c.User.Name
	if c.User.From != "" {
		note += " from " + c.User.From
	}
	if c.Reason != "" {
		note += " (" + c.Reason + ")"
	}
	if len(changes) > 0 {
		note += ": " + strings.Join(changes, "; ")
	}
	instance, err := os.Hostname()
	if err != nil {
		instance = cluster.FieldManager
	}
	namespace := c.Object.GetNamespace()
	if namespace == "" {
		namespace = eventNamespace
	}
	// The name makes a form that is sent twice create one event.
	name := fmt.Sprintf("%s-%s-%s-%d", cluster.FieldManager, c.Action, c.Object.GetUID(), c.Object.GetGeneration())
	if c.Discriminator != "" {
		name += "-" + c.Discriminator
	}
	err = r.Cluster.WriteEvent(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		EventTime:  metav1.NowMicro(), Type: corev1.EventTypeNormal, Reason: past, Action: c.Action,
		ReportingController: "kuota.dev/console", ReportingInstance: instance,
		Regarding: reference, Note: shorten(note),
	})
	if err != nil && governance.KindOf(err) != governance.Exists {
		r.Log.Warn("event of a change not written", "name", c.Object.GetName(), "error", err)
	}
}

// shorten truncates a note to noteLimit.
func shorten(note string) string {
	if len(note) <= noteLimit {
		return note
	}
	return strings.ToValidUTF8(note[:noteLimit-len("…")], "") + "…"
}
