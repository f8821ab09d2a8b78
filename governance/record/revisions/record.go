package revisions

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store stores revisions; cluster.Revisions implements it.
type Store interface {
	Cached(of string) ([]*metav1.PartialObjectMetadata, error)
	List(ctx context.Context, of string) ([]*metav1.PartialObjectMetadata, error)
	Get(ctx context.Context, name string) (*appsv1.ControllerRevision, error)
	Create(ctx context.Context, revision *appsv1.ControllerRevision) (bool, error)
	Delete(ctx context.Context, name string) error
}

// maxCreateAttempts bounds the attempts to create a revision while others take
// its number.
const maxCreateAttempts = 5

// Series records successive specs of one object. It remembers the revisions that it
// created, so that a spec after the first costs two calls although the cache is behind.
// It is for one goroutine, and for as long as nobody else creates revisions, such as
// a replica while it leads.
type Series struct {
	Store Store
	// Recording is called with each revision before it is created, and again for one whose
	// creation failed, and with the manifest of the version before it, empty for none; nil
	// for nothing.
	Recording func(made Revision, before []byte)

	kept   []Revision // the newest first; nil if unknown
	newest []byte     // data of the newest; nil if unknown
}

// Record stores the next spec of a policy or an allocation as a revision, once, and
// deletes the oldest ones beyond Limit. now is when the change was observed. It
// can be repeated after a failure, and several consoles can record the same object
// concurrently.
func (s *Series) Record(ctx context.Context, object client.Object, now time.Time) error {
	owner, data, err := revisionOf(object)
	if err != nil {
		return err
	}
	kept, before := s.kept, s.newest
	s.kept, s.newest = nil, nil // unknown until the call succeeds
	if kept == nil {
		list, err := s.Store.Cached(owner.label())
		if err != nil || len(list) == 0 && object.GetGeneration() > Limit { // the cache has not synced, or is far behind
			list, err = s.Store.List(ctx, owner.label())
		}
		if err != nil {
			return err
		}
		kept = fromObjects(list)
	}
	for range maxCreateAttempts {
		if isRecorded(kept, object) {
			s.kept, s.newest = kept, before
			return prune(ctx, s.Store, owner, kept)
		}
		if before == nil {
			before, err = owner.newestData(ctx, s.Store, kept)
		}
		if err != nil && governance.KindOf(err) != governance.NotFound {
			return err
		}
		// If the newest revision was not found, the cache is so far behind that it was
		// pruned. The number after it may be free again, but it was used.
		if err == nil {
			revision := owner.revision(object, data, kept, before, now)
			if s.Recording != nil {
				s.Recording(fromObject(revision), before)
			}
			made, err := s.Store.Create(ctx, revision)
			if err != nil {
				return err
			}
			if made {
				kept = append([]Revision{fromObject(revision)}, kept...)
				if err := prune(ctx, s.Store, owner, kept); err != nil {
					return err
				}
				s.kept, s.newest = kept[:min(len(kept), Limit)], data
				return nil
			}
		}
		// The cache is behind: its next number is taken, by this console before a
		// restart or by another one. Listing only now keeps the cost of n versions
		// linear.
		list, err := s.Store.List(ctx, owner.label())
		if err != nil {
			return err
		}
		kept, before = fromObjects(list), nil
	}
	return &governance.Error{Kind: governance.Conflict, Op: "keep revision", Message: fmt.Sprintf("Others keep revisions of %s at the same time.", owner.name)}
}

// Recorded reports whether the spec of an object or a newer one is recorded, by the
// cache of the store.
func Recorded(store Store, object client.Object) bool {
	owner, _, err := revisionOf(object)
	if err != nil {
		return false
	}
	list, err := store.Cached(owner.label())
	return err == nil && isRecorded(fromObjects(list), object)
}

// isRecorded reports whether the spec of an object or a newer one is recorded:
// a revision is never inserted before others.
func isRecorded(kept []Revision, object metav1.Object) bool {
	return slices.ContainsFunc(kept, func(r Revision) bool {
		return r.UID == string(object.GetUID()) && r.Generation >= object.GetGeneration()
	})
}

// newestData returns the data of the newest revision, and nil if kept has none. It
// returns governance.NotFound if that revision was deleted.
func (o Owner) newestData(ctx context.Context, store Store, kept []Revision) ([]byte, error) {
	if len(kept) == 0 {
		return nil, nil
	}
	revision, err := store.Get(ctx, o.object(kept[0].Number))
	if err != nil {
		return nil, err
	}
	return revision.Data.Raw, nil
}

// revision returns the ControllerRevision of a spec that follows those in kept.
// before is the data of the newest of them.
func (o Owner) revision(object metav1.Object, data []byte, kept []Revision, before []byte, now time.Time) *appsv1.ControllerRevision {
	var newest *Revision
	if len(kept) > 0 {
		newest = &kept[0]
	}
	r := nextRevision(object, newest, now)
	// A deletion increments the generation and keeps the spec.
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

// prune deletes the oldest revisions beyond Limit.
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
		return Owner{}, nil, &governance.Error{Op: "keep revision", Message: "The spec cannot be encoded.", Err: err}
	}
	return owner, data, nil
}
