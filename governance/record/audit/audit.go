package audit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/record/activity"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/spec/change"

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
	// Activity keeps changes for as long as history; nil keeps none.
	Activity *activity.Log
	// Team returns the team of a task that o is, for Activity; empty for none.
	Team func(o client.Object) string
}

// Action is what was done to an object.
type Action string

// The actions.
const (
	Create      Action = "create"
	Adopt       Action = "adopt" // a ClusterQueue, by an allocation that is created
	Update      Action = "update"
	Delete      Action = "delete"
	Submit      Action = "submit"
	Stop        Action = "stop"
	Resume      Action = "resume"
	Front       Action = "front" // a class that moves a task to the front of its queue
	ChangeClass Action = "change-class"
	Resize      Action = "resize"  // of an elastic task
	Scale       Action = "scale"   // of a service
	Hold        Action = "hold"    // a queue, or a task by the loop guard
	Drain       Action = "drain"   // a queue
	Release     Action = "release" // a task by the loop guard, or a queue by the deletion of its allocation
	TryAgain    Action = "try-again"
	Silence     Action = "silence" // alerts
	EndSilence  Action = "end-silence"
	OpenWindow  Action = "open-window" // of an allocation, by itself
	CloseWindow Action = "close-window"
	BudgetStep  Action = "budget-step"
	Correct     Action = "correct" // of an object that another manager changed
)

// Actions has all actions, in the order of pages.
var Actions = []Action{Submit, Stop, Resume, Front, ChangeClass, Resize, Scale, Delete, Create, Adopt, Update, Hold, Drain, Release, TryAgain, Silence, EndSilence, OpenWindow, CloseWindow, BudgetStep, Correct}

// Switching returns the action that makes a task active or not.
func Switching(active bool) Action {
	if active {
		return Resume
	}
	return Stop
}

// OfActivation returns the action of a changed spec of an allocation by its activation
// before and after: Hold, Drain or Resume its queue, or Update if both are equal.
func OfActivation(before, after v1alpha1.Activation) Action {
	before, after = cmp.Or(before, v1alpha1.Active), cmp.Or(after, v1alpha1.Active)
	switch {
	case before == after:
		return Update
	case after == v1alpha1.Hold:
		return Hold
	case after == v1alpha1.Drain:
		return Drain
	}
	return Resume
}

// OfDeletion returns the action of the deletion of an allocation with these annotations.
func OfDeletion(annotations map[string]string) Action {
	if annotations[v1alpha1.AnnotationRelease] == "true" {
		return Release
	}
	return Delete
}

// pasts are the actions in the past tense.
var pasts = map[Action]string{
	Create: "Created", Adopt: "Adopted", Delete: "Deleted", Submit: "Submitted", Stop: "Stopped", Resume: "Resumed", Front: "Moved to front",
	ChangeClass: "Priority class changed", Resize: "Resized", Scale: "Scaled", Hold: "Held", Drain: "Drained", Release: "Released", TryAgain: "Tried again",
	Silence: "Silenced", EndSilence: "Silence ended", OpenWindow: "Window opened", CloseWindow: "Window closed", BudgetStep: "Budget step", Correct: "Corrected",
}

// Past returns an action in the past tense, such as "Stopped".
func (a Action) Past() string { return cmp.Or(pasts[a], "Changed") }

// Object is the object that an entry of Activity is about, where that is another than
// the changed one: the task whose Workload changed.
type Object struct {
	Kind, Namespace, Name, UID string
}

// Change is one change that a user made or tried to make.
type Change struct {
	User     governance.User
	Action   Action
	Object   client.Object // as it is afterwards
	Of       Object        // the zero value is Object itself
	Old, New any           // its spec before and after; nil for none
	Reason   string        // of the user; empty for none
	Err      error         // why it failed; nil if it succeeded
	// Discriminator makes the event's name unique among changes of the same
	// generation, such as those of labels; else empty.
	Discriminator string
	// ID makes several changes of one request one entry of Activity; empty for an entry
	// of its own.
	ID string
	// Program is the controller that made the change by itself; User is not a person then.
	Program bool
}

// reason returns the user's reason of a change. Later changes of an object keep the
// annotation.
func (c *Change) reason() string {
	if c.Reason == "" && c.setsSpec() {
		return c.Object.GetAnnotations()[v1alpha1.AnnotationReason]
	}
	return c.Reason
}

// setsSpec reports whether a change sets the spec of an allocation, a department or the policy, whose
// annotations have the reason.
func (c *Change) setsSpec() bool {
	switch c.Object.(type) {
	case *v1alpha1.ComputeAllocation, *v1alpha1.Department, *v1alpha1.ClusterPolicy:
		return c.New != nil
	}
	return false
}

// deletes reports whether a change deletes an allocation.
func (c *Change) deletes() bool {
	_, ok := c.Object.(*v1alpha1.ComputeAllocation)
	return ok && (c.Action == Delete || c.Action == Release)
}

// eventReason returns the reason of an Event: what was done to the object, as the API
// server sees it.
func (c *Change) eventReason() string {
	switch {
	case c.Action == Create, c.Action == Adopt, c.Action == Submit:
		return "Created"
	case c.Action == Delete, c.deletes():
		return "Deleted"
	}
	return "Changed"
}

// Record logs a change, keeps it as activity, and creates the event in the background.
// Without a Reason, a changed spec has that of its annotation.
func (r *Recorder) Record(c Change) {
	c.Reason = c.reason()
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
	r.Activity.Add(r.entry(c, kind, changes))
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

// entry returns a change as activity.
func (r *Recorder) entry(c Change, kind string, changes []string) history.Activity {
	of := c.Of
	if of == (Object{}) {
		of = Object{kind, c.Object.GetNamespace(), c.Object.GetName(), string(c.Object.GetUID())}
	}
	e := history.Activity{
		ID: cmp.Or(idOf(c, of), c.ID, NewID()), At: time.Now().UTC(), Actor: c.User.Name, Address: c.User.From, Source: history.SourceConsole, Action: string(c.Action),
		Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, UID: of.UID, Changes: changes, Reason: c.Reason, Outcome: history.Succeeded,
	}
	if c.Program {
		e.Source = history.SourceController
	}
	switch {
	case of.Kind == "ComputeAllocation":
		e.Team = of.Name
	case of.Namespace != "" && r.Team != nil:
		e.Team = r.Team(c.Object)
	}
	if c.Err != nil {
		e.Outcome, e.Error = history.Refused, c.Err.Error()
		if governance.KindOf(c.Err) == governance.Unavailable {
			e.Outcome = history.OutcomeUnknown
		}
	}
	return e
}

// idOf returns the id that others give a change that they see: the recorder of history the
// submission or deletion of a task, the keeper of versions a spec. So both are one entry; empty
// for other changes.
func idOf(c Change, of Object) string {
	switch {
	case c.Err != nil || of.UID == "":
		return ""
	case c.Action == Submit:
		return history.SubmissionID(of.UID)
	case c.Action == Delete && of.Namespace != "", c.deletes():
		return history.DeletionID(of.UID)
	case c.setsSpec() && c.Object.GetGeneration() > 0:
		return history.ChangeID(of.UID, c.Object.GetGeneration())
	}
	return ""
}

// NewID returns an id for the changes of one request.
func NewID() string { return rand.Text() }

// event creates a Kubernetes Event on the object.
func (r *Recorder) event(c Change, changes []string) {
	ctx, cancel := context.WithTimeout(context.Background(), eventLimit)
	defer cancel()
	reference := corev1.ObjectReference{Name: c.Object.GetName(), Namespace: c.Object.GetNamespace(), UID: c.Object.GetUID(), ResourceVersion: c.Object.GetResourceVersion()}
	if gvk, err := apiutil.GVKForObject(c.Object, cluster.Scheme); err == nil {
		reference.APIVersion, reference.Kind = gvk.GroupVersion().String(), gvk.Kind
	}
	past := c.eventReason()
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
	// The name makes a form that is sent twice create one event.
	name := fmt.Sprintf("%s-%s-%s-%d", cluster.FieldManager, c.Action, c.Object.GetUID(), c.Object.GetGeneration())
	if c.Discriminator != "" {
		name += "-" + c.Discriminator
	}
	err = r.Cluster.WriteEvent(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(c.Object.GetNamespace(), eventNamespace), Name: name},
		EventTime:  metav1.NowMicro(), Type: corev1.EventTypeNormal, Reason: past, Action: string(c.Action),
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

// none is shown for a missing value.
const none = "–"

// diff returns the values that differ between two specs, one line each: path,
// old → new. Either spec may be nil.
//
// Unlike in change.Fields, items of lists have an index and strings are quoted, so
// that no text of a user can look like another change.
func diff(before, after any) []string {
	old, updated := map[string]string{}, map[string]string{}
	flatten("spec", plain(before), old)
	flatten("spec", plain(after), updated)
	var lines []string
	for _, f := range change.Between(old, updated) {
		lines = append(lines, fmt.Sprintf("%s: %s → %s", f.Path, cmp.Or(f.Before, none), cmp.Or(f.After, none)))
	}
	return lines
}

// plain converts a spec to its JSON value.
func plain(spec any) (value any) {
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return fmt.Sprintf("cannot be encoded: %v", err)
	}
	return value
}

// flatten adds every scalar below value to into, by path.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for name, inner := range v {
			flatten(path+"."+name, inner, into)
		}
	case []any:
		for i, inner := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
	case string:
		into[path] = fmt.Sprintf("%q", v)
	default:
		into[path] = fmt.Sprint(v)
	}
}
