package revisions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/textdiff"

	"sigs.k8s.io/yaml"
)

// Service serves the pages of versions.
type Service struct {
	Store       *cluster.Revisions
	Access      *access.Service
	Allocations *allocations.Service
}

// Version is one revision with its data and its difference to the one before.
type Version struct {
	Revision
	Newest  bool // the newest revision
	Deleted bool // the object was deleted
	// Older and Newer are the numbers of the neighbors; 0 for none.
	Older, Newer int64
	// HasPrevious reports whether Changes and Lines compare with the revision before,
	// or with nothing for the first one.
	HasPrevious bool
	Changes     []change.Field
	Lines       []textdiff.Line // as YAML that can be applied
	// Allocation or Policy is the spec; the other is nil.
	Allocation *v1alpha1.ComputeAllocationSpec
	Policy     *v1alpha1.ClusterPolicySpec
}

// History returns the revisions of an owner, the newest first. A user who can
// see the object can see them. A user who sees only some teams does not see the
// revisions of a deleted team of the same name.
func (s *Service) History(ctx context.Context, user governance.User, owner Owner) ([]Revision, error) {
	history, _, err := s.history(ctx, user, owner)
	return history, err
}

func (s *Service) history(ctx context.Context, user governance.User, owner Owner) (history []Revision, deleted bool, err error) {
	only, deleted, err := s.authorize(ctx, user, owner)
	if err != nil {
		return nil, false, err
	}
	known, err := s.Store.Cached(owner.label())
	if err != nil {
		return nil, false, err
	}
	history = fromObjects(known)
	if only != "" {
		history = slices.DeleteFunc(history, func(r Revision) bool { return r.UID != only })
	}
	if deleted && len(history) == 0 {
		return nil, false, notFound(owner)
	}
	return history, deleted, nil
}

// authorize returns an error if user cannot see the owner. only is the UID
// whose revisions the user can see; empty for all. Revisions of a deleted team
// are visible to users who see all teams or can create or update allocations.
func (s *Service) authorize(ctx context.Context, user governance.User, owner Owner) (only string, deleted bool, err error) {
	scope, err := s.Access.Scope(ctx, user)
	outside := governance.KindOf(err) == governance.Outside
	if err != nil && !outside {
		return "", false, err
	}
	if owner.kind == kindPolicy {
		if !outside {
			return "", false, nil
		}
		may, askErr := s.Access.MayEditPolicy(ctx, user)
		if askErr != nil {
			return "", false, askErr
		}
		if may {
			err = nil
		}
		return "", false, err
	}
	allocation, err := s.Allocations.Find(ctx, user, owner.name)
	switch {
	case err == nil && scope.All:
		return "", false, nil
	case err == nil:
		return string(allocation.UID), false, nil
	case governance.KindOf(err) != governance.NotFound || scope.All:
		return "", true, ignoreNotFound(err)
	}
	may, askErr := s.Allocations.May(ctx, user)
	if askErr != nil {
		return "", false, askErr
	}
	if may.Create || may.Update {
		return "", true, nil
	}
	return "", false, err
}

func ignoreNotFound(err error) error {
	if governance.KindOf(err) == governance.NotFound {
		return nil
	}
	return err
}

func notFound(owner Owner) error {
	message := "No version of the cluster policy is kept."
	if owner.kind == kindAllocation {
		message = fmt.Sprintf("There is no team %s, or you may not see it.", owner.name)
	}
	return &governance.Error{Kind: governance.NotFound, Op: "find version", Message: message}
}

// Version returns one revision with its data.
func (s *Service) Version(ctx context.Context, user governance.User, owner Owner, number int64) (Version, error) {
	history, deleted, err := s.history(ctx, user, owner)
	if err != nil {
		return Version{}, err
	}
	i := slices.IndexFunc(history, func(r Revision) bool { return r.Number == number })
	if i < 0 {
		return Version{}, &governance.Error{Kind: governance.NotFound, Op: "find version", Message: fmt.Sprintf("Version %d is not kept, or there never was one.", number)}
	}
	version := Version{Revision: history[i], Newest: i == 0, Deleted: deleted}
	if i > 0 {
		version.Newer = history[i-1].Number
	}
	holds, err := s.Store.Get(ctx, owner.object(number))
	if err != nil {
		return Version{}, err
	}
	var before []byte
	if i+1 < len(history) {
		was, err := s.Store.Get(ctx, owner.object(history[i+1].Number))
		if ignoreNotFound(err) != nil {
			return Version{}, err
		}
		if err == nil {
			before, version.Older = was.Data.Raw, history[i+1].Number
		}
	}
	version.HasPrevious = before != nil || version.Generation == 1
	if err := version.fill(owner, before, holds.Data.Raw); err != nil {
		return Version{}, &governance.Error{Op: "read version", Message: "The version cannot be read.", Err: err}
	}
	return version, nil
}

// fill decodes the data of a revision and compares it with the one before.
func (v *Version) fill(owner Owner, before, after []byte) error {
	old, err := text(before)
	if err != nil {
		return err
	}
	now, err := text(after)
	if err != nil {
		return err
	}
	if !v.HasPrevious {
		old = now
	} else if v.Changes, err = owner.changes(before, after); err != nil {
		return err
	}
	v.Lines = textdiff.Texts(old, now)
	if owner.kind == kindPolicy {
		v.Policy = &v1alpha1.ClusterPolicySpec{}
		return spec(after, v.Policy)
	}
	v.Allocation = &v1alpha1.ComputeAllocationSpec{}
	return spec(after, v.Allocation)
}

// text returns a manifest as YAML; empty for none.
func text(manifest []byte) (string, error) {
	if len(manifest) == 0 {
		return "", nil
	}
	text, err := yaml.JSONToYAML(manifest)
	return string(text), err
}

// DeletedTeams returns the teams that have revisions but no allocation in
// existing, by name. Call it only for users who see all teams.
func (s *Service) DeletedTeams(existing []v1alpha1.ComputeAllocation) []string {
	teams := make(map[string]bool, len(existing))
	for i := range existing {
		teams[existing[i].Name] = true
	}
	var deleted []string
	for _, of := range s.Store.Owners() {
		if team, ok := strings.CutPrefix(of, kindAllocation+"."); ok && !teams[team] {
			deleted = append(deleted, team)
		}
	}
	slices.Sort(deleted)
	return deleted
}
