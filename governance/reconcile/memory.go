package reconcile

import (
	"sync"

	"kuota.dev/kuota/governance/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory remembers which generation of an object was the one that applying
// led to. Kueue writes the status of its queues many times a minute, and each
// time the controller looks; as long as nobody changed what is wanted, nothing
// needs to be sent. After a restart everything is applied once.
type memory struct{ generations sync.Map }

// settled tells whether an object, as the cache has it, is as it was left when
// it was last applied, with the labels and the digest that are wanted.
func (m *memory) settled(cached client.Object, labels map[string]string, digest string) bool {
	generation, ok := m.generations.Load(cached.GetUID())
	return ok && generation == cached.GetGeneration() &&
		cached.GetAnnotations()[desired.AnnotationDesired] == digest && contains(cached.GetLabels(), labels)
}

// applied remembers what applying led to. uid and generation come from the
// server's answer.
func (m *memory) applied(uid any, generation int64) { m.generations.Store(uid, generation) }

// contains tells whether all has every entry of some.
func contains(all, some map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}
