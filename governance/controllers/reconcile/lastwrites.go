package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastWriteTTL bounds how long a cached object counts as stale. After an etcd
// restore, resourceVersions are lower than before.
const lastWriteTTL = 10 * time.Second

// lastWrites stores the resourceVersion that each object had after a controller
// wrote it, until the cache has it. Reconciling an older object would repeat the
// write as a conflict, and decide by an outdated status. The zero
// value is ready, and safe for concurrent use.
type lastWrites struct{ byName sync.Map }

type lastWrite struct {
	resourceVersion string
	at              time.Time
}

// record stores the resourceVersion of an object that was just written.
func (w *lastWrites) record(object client.Object) {
	w.byName.Store(object.GetName(), lastWrite{object.GetResourceVersion(), time.Now()})
}

// forget removes an object that no longer exists.
func (w *lastWrites) forget(name string) { w.byName.Delete(name) }

// isStale reports whether an object from the cache is older than the last write.
func (w *lastWrites) isStale(object client.Object) bool {
	value, ok := w.byName.Load(object.GetName())
	if !ok {
		return false
	}
	last, _ := value.(lastWrite)
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resourceVersion)
	if err == nil && order < 0 && time.Since(last.at) < lastWriteTTL {
		return true
	}
	w.byName.CompareAndDelete(object.GetName(), value)
	return false
}
