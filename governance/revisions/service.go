package revisions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/change"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/textdiff"

	"sigs.k8s.io/yaml"
)

// Service answers the pages about versions.
type Service struct {
	Store       *cluster.Revisions
	Access      *access.Service
	Allocations *allocations.Service
}

// Version is one revision with what it holds, beside the one before.
type Version struct {
	Revision
	Newest  bool // no later one is kept
	Deleted bool // there is no such object any more
	// Older and Newer are the numbers of those beside it; 0 for none.
	Older, Newer int64
	// Compared tells whether the one before is kept, or this is the first of all.
	HasPrevious bool
	Changes     []change.Field
	Lines       []textdiff.Line // as YAML that can be applied
	// One of these has the spec; the other is nil.
	Allocation *v1alpha1.ComputeAllocationSpec
	Policy     *v1alpha1.ClusterPolicySpec
}

// History are the revisions of something, the newest first. Who may see it may
// see them; who sees only some teams sees none of what had a team's name before.
func (s *Service) History(ctx context.Context, user governance.User, owner Owner) ([]Revision, error) {
	history, _, err := s.history(ctx, user, owner)
	return history, err
}

func (s *Service) history(ctx context.Context, user governance.User, owner Owner) (history []Revision, gone bool, err error) {
	only, gone, err := s.authorize(ctx, user, owner)
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
	if gone && len(history) == 0 {
		return nil, false, notFound(owner)
	}
	return history, gone, nil
}

// seen refuses who may not see the owner. only is the UID whose revisions they
// may see; empty for all. What was deleted is for those who see every team, or
// may make allocations or change them.
func (s *Service) authorize(ctx context.Context, user governance.User, owner Owner) (only string, gone bool, err error) {
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

// Version is one revision, with what it holds.
func (s *Service) Version(ctx context.Context, user governance.User, owner Owner, number int64) (Version, error) {
	history, gone, err := s.history(ctx, user, owner)
	if err != nil {
		return Version{}, err
	}
	i := slices.IndexFunc(history, func(r Revision) bool { return r.Number == number })
	if i < 0 {
		return Version{}, &governance.Error{Kind: governance.NotFound, Op: "find version", Message: fmt.Sprintf("Version %d is not kept, or there never was one.", number)}
	}
	version := Version{Revision: history[i], Newest: i == 0, Deleted: gone}
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

// fill reads what a revision holds, and compares it with the one before.
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
	v.Lines = compare(old, now)
	if owner.kind == kindPolicy {
		v.Policy = &v1alpha1.ClusterPolicySpec{}
		return spec(after, v.Policy)
	}
	v.Allocation = &v1alpha1.ComputeAllocationSpec{}
	return spec(after, v.Allocation)
}

// text is a manifest in YAML; empty for none.
func text(manifest []byte) (string, error) {
	if len(manifest) == 0 {
		return "", nil
	}
	text, err := yaml.JSONToYAML(manifest)
	return string(text), err
}

// Deleted are the teams whose revisions are kept though their allocation is not
// there any more, by name. It is for those who see every team: there are the
// teams that have one.
func (s *Service) DeletedTeams(there []v1alpha1.ComputeAllocation) []string {
	teams := make(map[string]bool, len(there))
	for i := range there {
		teams[there[i].Name] = true
	}
	var gone []string
	for _, of := range s.Store.Owners() {
		if team, ok := strings.CutPrefix(of, kindAllocation+"."); ok && !teams[team] {
			gone = append(gone, team)
		}
	}
	slices.Sort(gone)
	return gone
}
