package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The kinds that the console works with. It starts its controllers once all are
// there.
var (
	ownKinds   = []string{"ClusterPolicy", "ComputeAllocation"}
	kueueKinds = []string{"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "WorkloadPriorityClass"}
)

// kindsInterval is how often the API server is asked for its kinds: while some
// are missing, and once all are there.
const (
	missingKindsInterval = time.Second
	kindsInterval        = 5 * time.Second
	discoveryTimeout     = 5 * time.Second
)

// Kinds is what the API server does not have of what the console works with.
type MissingKinds struct {
	Discovered bool     // false until the API server has answered
	Own        []string // kinds of Kuota's
	Kueue      []string // kinds of Kueue's, in the version that the console speaks
	// Versions are those that Kueue's kinds are served in where that version is
	// not among them: an older Kueue, or a newer one.
	KueueVersions []string
}

// Complete tells whether nothing is missing.
func (k MissingKinds) Complete() bool { return k.Discovered && len(k.Own) == 0 && len(k.Kueue) == 0 }

// None tells whether there is nothing of Kueue's at all.
func (k MissingKinds) NoKueue() bool {
	return len(k.Kueue) == len(kueueKinds) && len(k.KueueVersions) == 0
}

// Trouble is a sentence about what is missing and what to do; empty when
// nothing is.
func (k MissingKinds) Message() string {
	switch {
	case !k.Discovered:
		return ""
	case len(k.Own) > 0:
		return fmt.Sprintf("Kuota's CRDs are not installed in this cluster: %s. A cluster admin can install them from deploy/crds.", strings.Join(k.Own, ", "))
	case len(k.KueueVersions) > 0:
		return fmt.Sprintf("Kueue serves its API in %s only, and Kuota needs %s, which Kueue serves from version 0.15. Until Kueue is upgraded, queues and tasks are not shown and nothing is written to Kueue.",
			strings.Join(k.KueueVersions, ", "), kueue.SchemeGroupVersion.Version)
	case k.NoKueue():
		return "Kueue is not installed in this cluster, so quotas are not enforced. Policies and allocations take effect, and versions and deletions are processed, once Kueue is installed."
	case len(k.Kueue) > 0:
		return fmt.Sprintf("Kueue is only partly installed: %s missing. Policies, allocations and deletions take effect once a cluster admin installs Kueue's CRDs again.", are(k.Kueue))
	}
	return ""
}

func are(kinds []string) string {
	if len(kinds) == 1 {
		return "its CRD " + kinds[0] + " is"
	}
	return "its CRDs " + strings.Join(kinds, ", ") + " are"
}

// Kinds tells what is missing, as of some seconds ago at most.
func (c *Cluster) MissingKinds() MissingKinds {
	if k := c.missingKinds.Load(); k != nil {
		return *k
	}
	return MissingKinds{}
}

// lookAtKinds asks the API server for its kinds. While it does not answer, the
// last answer stands.
func (c *Cluster) discoverKinds(ctx context.Context) error {
	if err := c.detectAddOn(ctx); err != nil {
		return err
	}
	own, _, err := missingOf(c.discovery, v1alpha1.GroupVersion, ownKinds)
	if err != nil {
		return err
	}
	of, group, err := missingOf(c.discovery, kueue.SchemeGroupVersion, kueueKinds)
	if err != nil {
		return err
	}
	k := MissingKinds{Discovered: true, Own: own, Kueue: of}
	if !group { // a Kueue of another version has the group in others
		groups, err := c.discovery.ServerGroups()
		if err != nil {
			return err
		}
		for _, g := range groups.Groups {
			if g.Name == kueue.SchemeGroupVersion.Group {
				for _, v := range g.Versions {
					k.KueueVersions = append(k.KueueVersions, v.Version)
				}
			}
		}
	}
	before := c.MissingKinds()
	c.missingKinds.Store(&k)
	if trouble := k.Message(); trouble != before.Message() {
		c.log.Warn("API resources of the cluster changed", "trouble", trouble)
		c.AllocationChanges.Notify()
		c.TaskChanges.Notify()
	}
	return nil
}

// lacks are those of kinds that a group's version does not have; served tells
// whether there is that version at all.
func missingOf(d discovery.DiscoveryInterface, version schema.GroupVersion, kinds []string) (missing []string, served bool, err error) {
	list, err := d.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return kinds, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, kind := range kinds {
		found := false
		for _, r := range list.APIResources {
			found = found || r.Kind == kind && !strings.Contains(r.Name, "/")
		}
		if !found {
			missing = append(missing, kind)
		}
	}
	return missing, true, nil
}

// waitForKinds returns once the cluster answers and has all kinds.
func (c *Cluster) waitForKinds(ctx context.Context) error {
	told := ""
	for {
		err := c.discoverKinds(ctx)
		if err == nil && c.MissingKinds().Complete() {
			if err = c.checkRESTMapper(); err == nil {
				return nil
			}
		}
		if err != nil && err.Error() != told {
			told = err.Error()
			c.log.Warn("waiting for the cluster", "error", err)
		}
		if err := sleep(ctx, missingKindsInterval); err != nil {
			return err
		}
	}
}

// mapped tells whether the manager's own map of kinds, which fills as it is
// asked, has them all.
func (c *Cluster) checkRESTMapper() error {
	for version, kinds := range map[schema.GroupVersion][]string{v1alpha1.GroupVersion: ownKinds, kueue.SchemeGroupVersion: kueueKinds} {
		for _, kind := range kinds {
			if _, err := c.Manager.GetRESTMapper().RESTMapping(schema.GroupKind{Group: version.Group, Kind: kind}, version.Version); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepLooking goes on looking for kinds until ctx ends: a definition may be
// taken away.
func (c *Cluster) pollKinds(ctx context.Context) {
	for {
		interval := kindsInterval
		if !c.MissingKinds().Complete() {
			interval = missingKindsInterval
		}
		if sleep(ctx, interval) != nil {
			return
		}
		_ = c.discoverKinds(ctx) // the last answer stands, and pages say how old it is
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// absent tells whether a kind is missing.
func (k MissingKinds) absent(gvk schema.GroupVersionKind) bool {
	return gvk.Group == kueue.SchemeGroupVersion.Group && slices.Contains(k.Kueue, gvk.Kind)
}

func (k MissingKinds) unavailable() error {
	return &governance.Error{Kind: governance.Unavailable, Op: "read", Message: k.Message()}
}
