package revisions

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store is where revisions are kept; cluster.Revisions is one.
type Store interface {
	Cached(of string) ([]*metav1.PartialObjectMetadata, error)
	List(ctx context.Context, of string) ([]*metav1.PartialObjectMetadata, error)
	Get(ctx context.Context, name string) (*appsv1.ControllerRevision, error)
	Create(ctx context.Context, revision *appsv1.ControllerRevision) (bool, error)
	Delete(ctx context.Context, name string) error
}

// keepTries is how often a number is looked for while others take it.
const maxCreateAttempts = 5

// Keep has the spec of a policy or an allocation kept as a revision, once, and
// removes those that are too many. now is when the change was seen. Stopped
// anywhere, it can be called again; several consoles can call it at a time.
func Record(ctx context.Context, store Store, object client.Object, now time.Time) error {
	owner, data, err := revisionOf(object)
	if err != nil {
		return err
	}
	list, err := store.Cached(owner.label())
	if err != nil { // not known yet
		list, err = store.List(ctx, owner.label())
	}
	for range maxCreateAttempts {
		if err != nil {
			return err
		}
		kept := fromObjects(list)
		if isRecorded(kept, object) {
			return prune(ctx, store, owner, kept)
		}
		var before []byte
		if before, err = owner.newestData(ctx, store, kept); err != nil {
			return err
		}
		revision := owner.revision(object, data, kept, before, now)
		var made bool
		if made, err = store.Create(ctx, revision); err != nil {
			return err
		}
		if made {
			return prune(ctx, store, owner, append([]Revision{fromObject(revision)}, kept...))
		}
		// What the watch brought is behind: its next number is taken, by us before
		// a restart or by another console. Without this a list for each version
		// would take the API server the square of their number.
		list, err = store.List(ctx, owner.label())
	}
	return &governance.Error{Kind: governance.Conflict, Op: "keep revision", Message: fmt.Sprintf("Others keep revisions of %s at the same time.", owner.name)}
}

// holds tells whether the spec of an object is kept, or a newer one: a revision
// is never put before others.
func isRecorded(kept []Revision, object metav1.Object) bool {
	for _, r := range kept {
		if r.UID == string(object.GetUID()) && r.Generation >= object.GetGeneration() {
			return true
		}
	}
	return false
}

// newest is what the newest revision holds; nothing where there is none.
func (o Owner) newestData(ctx context.Context, store Store, kept []Revision) ([]byte, error) {
	if len(kept) == 0 {
		return nil, nil
	}
	revision, err := store.Get(ctx, o.object(kept[0].Number))
	if governance.KindOf(err) == governance.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return revision.Data.Raw, nil
}

// revision is the object that keeps a spec, after those that are kept. before is
// what the newest of them holds.
func (o Owner) revision(object metav1.Object, data []byte, kept []Revision, before []byte, now time.Time) *appsv1.ControllerRevision {
	var newest *Revision
	if len(kept) > 0 {
		newest = &kept[0]
	}
	r := nextRevision(object, newest, now)
	// Deleting something gives it another generation, and no other spec.
	deleted := object.GetDeletionTimestamp() != nil && newest != nil && bytes.Equal(before, data)
	if deleted {
		r.setDeletion(object)
	}
	switch changes, err := o.changes(before, data); {
	case deleted:
		r.Summary = summaryDeleted
	case newest == nil && r.Generation == 1:
		r.Summary = "Created"
	case r.Generation == 1:
		r.Summary = "Deleted and created again"
	case newest == nil:
		r.Summary = "The first version that was kept"
	case err != nil:
		r.Summary = "Cannot be compared with the version before"
	default:
		r.Summary = summary(changes)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:        o.object(r.Number),
			Labels:      map[string]string{cluster.LabelRevisionOf: o.label(), "app.kubernetes.io/managed-by": cluster.FieldManager},
			Annotations: r.annotations(),
		},
		Data: runtime.RawExtension{Raw: data}, Revision: r.Number,
	}
}

// prune removes the oldest revisions beyond the limit.
func prune(ctx context.Context, store Store, owner Owner, kept []Revision) error {
	for _, r := range kept[min(len(kept), Limit):] {
		if err := store.Delete(ctx, owner.object(r.Number)); err != nil {
			return err
		}
	}
	return nil
}

// revisionOf returns the owner and the content of the revision of an object.
func revisionOf(object client.Object) (Owner, []byte, error) {
	var owner Owner
	var data []byte
	var err error
	switch o := object.(type) {
	case *v1alpha1.ComputeAllocation:
		owner = AllocationOwner(o.Name)
		data, err = manifestOf("ComputeAllocation", o.Name, o.Spec)
	case *v1alpha1.ClusterPolicy:
		owner = PolicyOwner()
		data, err = manifestOf("ClusterPolicy", o.Name, o.Spec)
	default:
		err = fmt.Errorf("%T has no revisions", object)
	}
	if err != nil {
		return Owner{}, nil, &governance.Error{Op: "keep revision", Message: "The spec cannot be written down.", Err: err}
	}
	return owner, data, nil
}
