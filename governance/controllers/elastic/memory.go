package elastic

import (
	"maps"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks/queries"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is since when conditions last that no object records. After a restart they
// begin again. It is not safe for concurrent use: one job is reconciled at a time.
type memory struct {
	fits   map[fitKey]map[int32]time.Time // since when each size fits
	faults map[types.UID]Fault            // by Job

	// created are the increments that the cache does not have yet, with the times of
	// their creation.
	created map[types.NamespacedName]creation

	// deleted are the Jobs that were deleted, with the times of their deletion: the cache
	// can have them for a while, as if nothing had happened.
	deleted map[types.UID]time.Time

	claims   []queries.Claimed
	claimsAt time.Time

	grown map[types.UID]time.Time // when an ElasticJob grew whose sources are not known yet

	class   bool // whether v1alpha1.ProvisionClass exists
	classAt time.Time

	// rooms is the room of all jobs at a time, while it is at most half of lookAgain old.
	rooms   *queries.Rooms
	roomsAt time.Time
}

// fitKey names an ElasticJob, and whether its sizes fit on quota only.
type fitKey struct {
	job   types.UID
	quota bool
}

func newMemory() memory {
	return memory{fits: map[fitKey]map[int32]time.Time{}, faults: map[types.UID]Fault{}, created: map[types.NamespacedName]creation{}, deleted: map[types.UID]time.Time{}, grown: map[types.UID]time.Time{}}
}

// creation is an increment that was created.
type creation struct {
	at       time.Time
	proposal queries.Proposal
}

// recordCreation records that an increment was created.
func (m *memory) recordCreation(job types.NamespacedName, p queries.Proposal, now time.Time) {
	m.created[job] = creation{now, p}
}

// createdWithout returns the increments that were created and that the cache does not have.
// cached reports whether it has a Job.
func (m *memory) createdWithout(cached func(types.NamespacedName) bool, now time.Time) (list []queries.Proposal) {
	maps.DeleteFunc(m.created, func(job types.NamespacedName, c creation) bool { return cached(job) || now.Sub(c.at) > admissionGrace })
	for _, c := range m.created {
		list = append(list, c.proposal)
	}
	return list
}

// recordDeletion records that a Job was deleted. Those of an earlier hour are forgotten:
// no cache has them any more.
func (m *memory) recordDeletion(job types.UID, now time.Time) {
	maps.DeleteFunc(m.deleted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > time.Hour })
	m.deleted[job] = now
}

// isDeleted reports whether a Job is being deleted, as the cache has it or as is known.
func (m *memory) isDeleted(job *batchv1.Job) bool {
	_, deleted := m.deleted[job.UID]
	return deleted || job.DeletionTimestamp != nil
}

// claimed returns claims that are at most half of lookAgain old, and reads them otherwise.
func (m *memory) claimed(now time.Time, read func() ([]queries.Claimed, error)) ([]queries.Claimed, error) {
	if now.Sub(m.claimsAt) < lookAgain/2 {
		return m.claims, nil
	}
	claims, err := read()
	if err == nil {
		m.claims, m.claimsAt = claims, now
	}
	return claims, err
}

// roomsSince returns the room of all jobs at most half of lookAgain ago, and reads it
// otherwise.
func (m *memory) roomsSince(now time.Time, read func() (*queries.Rooms, error)) (*queries.Rooms, error) {
	if m.rooms == nil || now.Sub(m.roomsAt) >= lookAgain/2 {
		rooms, err := read()
		if err != nil {
			m.rooms = nil
			return nil, err
		}
		m.rooms, m.roomsAt = rooms, now
	}
	return m.rooms, nil
}

// forgetRooms forgets the room of all jobs, and reports whether it was read before now.
func (m *memory) forgetRooms() bool {
	known := m.rooms != nil
	m.rooms = nil
	return known
}

// fitsSince records which sizes fit now, the size of the job plus room, and returns since
// when each does. While the room is uncertain, because an increment that just got its quota, or
// a pod that just got its node, can count twice, a size that does not fit is not forgotten.
func (m *memory) fitsSince(key fitKey, p v1alpha1.ElasticPolicy, size, room int32, uncertain bool, now time.Time) map[int32]time.Time {
	before := m.fits[key]
	fits, kept := map[int32]time.Time{}, map[int32]time.Time{}
	for _, s := range Sizes(p) {
		since, known := before[s]
		if !known {
			since = now
		}
		fit := s > size && s <= size+room
		if fit {
			fits[s] = since
		}
		if fit || uncertain && known && s > size {
			kept[s] = since
		}
	}
	m.fits[key] = kept
	return fits
}

// forgetFits makes an ElasticJob wait again before it grows.
func (m *memory) forgetFits(e types.UID) {
	delete(m.fits, fitKey{job: e})
	delete(m.fits, fitKey{e, true})
}

// classExists reports whether v1alpha1.ProvisionClass exists and the console may read it, as of
// at most classInterval ago.
func (m *memory) classExists(now time.Time, read func() error) (bool, error) {
	if now.Sub(m.classAt) < classInterval {
		return m.class, nil
	}
	err := read()
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return false, err
	}
	m.class, m.classAt = err == nil, now
	return m.class, nil
}

// sourcesWait is how long a job waits until it is known whose idle compute it grew into.
const sourcesWait = time.Second

// mayWaitForSources reports whether it is less than sourcesWait since a job grew.
func (m *memory) mayWaitForSources(e types.UID, now time.Time) bool {
	since, known := m.grown[e]
	if !known {
		m.grown[e] = now
	}
	return !known || now.Sub(since) < sourcesWait
}

const classInterval = 10 * time.Second

// faultSince records that pods of a Job do not run, and returns the fault with since when.
// The node that was lost first remains its cause.
func (m *memory) faultSince(job types.UID, fault Fault, now time.Time) Fault {
	if before, known := m.faults[job]; known {
		fault.Since = before.Since
		if before.Node != "" {
			fault.Cause, fault.Node = before.Cause, before.Node
		}
	} else {
		fault.Since = now
	}
	m.faults[job] = fault
	return fault
}

// forgetFault records that all pods of a Job run, or that its fault was acted upon.
func (m *memory) forgetFault(job types.UID) {
	delete(m.faults, job)
}

// forget forgets an ElasticJob and its Jobs.
func (m *memory) forget(e types.UID, parts ...types.UID) {
	m.forgetFits(e)
	delete(m.grown, e)
	maps.DeleteFunc(m.faults, func(uid types.UID, _ Fault) bool { return slices.Contains(parts, uid) })
}
