package submit

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// servedFor is how long it is remembered whether the API server has a kind: it
// is asked anew about each that it has not.
const servedFor = 30 * time.Second

// served remembers which kinds the API server lacks. Kueue's integration of a
// kind may be on long before its operator is installed.
type served struct {
	mu    sync.Mutex
	until time.Time
	lacks map[Kind]bool
}

// groups are the API groups of the kinds that not every cluster has.
var groups = map[Kind]string{PyTorchJob: "kubeflow.org", RayJob: "ray.io", JobSet: "jobset.x-k8s.io"}

// missing are those of some kinds that the API server does not have. What cannot
// be asked is not known to be missing.
func (s *served) missing(kinds []Kind, mapper meta.RESTMapper) map[Kind]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.After(s.until) {
		s.until, s.lacks = now.Add(servedFor), map[Kind]bool{}
	}
	missing := map[Kind]bool{}
	for _, kind := range kinds {
		lacks, asked := s.lacks[kind]
		if group := groups[kind]; group != "" && !asked {
			_, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: string(kind)})
			lacks = meta.IsNoMatchError(err)
			s.lacks[kind] = lacks
		}
		if lacks {
			missing[kind] = true
		}
	}
	return missing
}
