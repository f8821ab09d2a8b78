package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The kinds that the console needs. Its controllers start once the API server
// serves all of them.
var (
	ownKinds   = []string{"ClusterPolicy", "ComputeAllocation", "Department", "ElasticJob"}
	kueueKinds = []string{"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "WorkloadPriorityClass"}
)

// Intervals and timeout of discovery: while kinds are missing, and after that.
const (
	missingKindsInterval = time.Second
	kindsInterval        = 5 * time.Second
	discoveryTimeout     = 5 * time.Second
)

// MissingKinds are the kinds that the console needs and the API server does not
// serve.
type MissingKinds struct {
	Discovered bool     // false until discovery succeeded once
	Own        []string // of Kuota
	Kueue      []string // of Kueue, in the version that Kuota uses
	// Versions are the versions of Kueue's API if that version is not among
	// them: Kueue is older or newer.
	KueueVersions []string
	// MutatingPolicies reports that the API server does not serve
	// MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on. It is optional:
	// without it nothing records who changes a spec.
	MutatingPolicies bool
}

// Complete reports whether no kind is missing.
func (k MissingKinds) Complete() bool { return k.Discovered && len(k.Own) == 0 && len(k.Kueue) == 0 }

// NoKueue reports whether no kind of Kueue is served in any version.
func (k MissingKinds) NoKueue() bool {
	return len(k.Kueue) == len(kueueKinds) && len(k.KueueVersions) == 0
}

// Message returns a sentence about what is missing and what to do; empty if
// nothing is.
func (k MissingKinds) Message() string {
	switch {
	case !k.Discovered:
		return ""
	case len(k.Own) > 0:
		return fmt.Sprintf("Kuota's CRDs are not installed in this cluster: %s. The settings page shows a cluster admin how to install them.", strings.Join(k.Own, ", "))
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

// MissingKinds returns the result of the last discovery, which is at most some
// seconds old.
func (c *Cluster) MissingKinds() MissingKinds {
	if k := c.missingKinds.Load(); k != nil {
		return *k
	}
	return MissingKinds{}
}

// RecordsUsers reports whether the API server can record who changes a spec. It is
// true until discovery succeeded once.
func (c *Cluster) RecordsUsers() bool { return !c.MissingKinds().MutatingPolicies }

// Discover discovers once which kinds the API server serves and whether HyperPod's
// add-on manages the cluster. It is for programs that do not call Run.
func (c *Cluster) Discover(ctx context.Context) error { return c.discoverKinds(ctx) }

// discoverKinds updates the missing kinds. If the API server does not answer,
// the last result stays.
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
	if !group { // Kueue may serve the group in other versions
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
	policies, _, err := missingOf(c.discovery, admission.SchemeGroupVersion, []string{"MutatingAdmissionPolicy"})
	if err != nil {
		return err
	}
	k.MutatingPolicies = len(policies) > 0
	before := c.MissingKinds()
	c.missingKinds.Store(&k)
	if k.MutatingPolicies && !before.MutatingPolicies {
		c.log.Info("the API server does not record who changes policies and allocations: it does not serve MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on")
	}
	if trouble := k.Message(); trouble != before.Message() {
		c.log.Warn("API resources of the cluster changed", "trouble", trouble)
		c.AllocationChanges.Notify()
		c.TaskChanges.Notify()
	}
	return nil
}

// missingOf returns those of kinds that a group version does not serve. served
// reports whether the group version exists.
func missingOf(d discovery.DiscoveryInterface, version schema.GroupVersion, kinds []string) (missing []string, served bool, err error) {
	list, err := d.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return kinds, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	missing = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind && !strings.Contains(r.Name, "/") })
	})
	return missing, true, nil
}

// waitForKinds waits until the cluster serves all kinds. It returns an error
// only if ctx ends.
func (c *Cluster) waitForKinds(ctx context.Context) error {
	logged := ""
	return wait.PollUntilContextCancel(ctx, missingKindsInterval, true, func(ctx context.Context) (bool, error) {
		err := c.discoverKinds(ctx)
		if err == nil && c.MissingKinds().Complete() {
			if err = c.checkRESTMapper(); err == nil {
				return true, nil
			}
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			c.log.Warn("waiting for the cluster", "error", err)
		}
		return false, nil
	})
}

// checkRESTMapper returns an error until the manager's RESTMapper, which loads
// kinds on demand, has all kinds.
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

// pollKinds repeats discovery until ctx ends, because a CRD may be deleted.
func (c *Cluster) pollKinds(ctx context.Context) {
	for {
		interval := kindsInterval
		if !c.MissingKinds().Complete() {
			interval = missingKindsInterval
		}
		if governance.Sleep(ctx, interval) != nil {
			return
		}
		_ = c.discoverKinds(ctx) // the last result stays, and pages show its age
	}
}

// absent reports whether a kind of Kueue is missing.
func (k MissingKinds) absent(gvk schema.GroupVersionKind) bool {
	return gvk.Group == kueue.SchemeGroupVersion.Group && slices.Contains(k.Kueue, gvk.Kind)
}

func (k MissingKinds) unavailable() error {
	return &governance.Error{Kind: governance.Unavailable, Op: "read", Message: k.Message()}
}
