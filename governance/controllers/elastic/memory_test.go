package elastic

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Job that was deleted is not counted again while the cache still has it as it was.
func TestDeletionsThatTheCacheLacks(t *testing.T) {
	m := newMemory()
	now := time.Now()
	cached := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	if m.isDeleted(cached) {
		t.Error("a Job that nobody deleted is deleted")
	}
	m.recordDeletion(cached.UID, now)
	if !m.isDeleted(cached) {
		t.Error("a Job that was deleted counts until the cache knows it")
	}
	for _, uid := range []types.UID{"b", "c"} {
		m.recordDeletion(uid, now.Add(2*time.Hour))
	}
	if len(m.deleted) != 2 {
		t.Errorf("after hours it remembers %d deletions, want the last 2", len(m.deleted))
	}
}
