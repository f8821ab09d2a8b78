package manifest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
	"kuota.dev/kuota/governance/quota"
)

// SanitizeName clears an invalid team name, and reports it.
func SanitizeName(name *string, path string) (problems governance.FieldErrors) {
	if problem := quota.CheckTeamName(*name); problem != "" {
		if *name == "" {
			problem = "is missing: " + problem
		}
		problems.Addf(path, "%s", problem)
		*name = ""
	}
	return problems
}

// SanitizeSpec removes the values from the spec of an allocation that its CRD does
// not allow, and reports them.
func SanitizeSpec(spec *v1alpha1.ComputeAllocationSpec, path string) (problems governance.FieldErrors) {
	s := sanitizer{&problems}
	at := func(name string) string { return document.Child(path, name) }
	if s.text(&spec.DisplayName, at("displayName"), v1alpha1.MaxDisplayName); strings.ContainsFunc(spec.DisplayName, unicode.IsControl) {
		problems.Addf(at("displayName"), "has line breaks or control characters; ignored")
		spec.DisplayName = ""
	}
	s.text(&spec.Description, at("description"), v1alpha1.MaxDescription)
	oneOf(s, &spec.Activation, at("activation"), v1alpha1.Active, v1alpha1.Hold, v1alpha1.Drain)
	if n := spec.Namespace; n != "" && (len(n) > v1alpha1.MaxLabelValue || !v1alpha1.ValidName(n) || strings.HasPrefix(n, "kube-") || slices.Contains([]string{"default", "kueue-system", "kuota-system"}, n)) {
		problems.Addf(at("namespace"), "%s cannot be the namespace of a team; ignored", document.Quote(n))
		spec.Namespace = ""
	}
	spec.Members = s.members(spec.Members, at("members"))
	spec.Shares = s.shares(spec.Shares, at("shares"))
	if w := spec.FairShareWeight; w < 0 || w > v1alpha1.MaxWeight {
		problems.Addf(at("fairShareWeight"), "must be from 0 to 100; 0 is used")
		spec.FairShareWeight = 0
	}
	spec.Quota = s.rows(spec.Quota, at("quota"))
	s.sharing(&spec.Sharing, at("sharing"))
	oneOf(s, &spec.Preemption.WithinTeam, at("preemption.withinTeam"), v1alpha1.PreemptLowerPriority, v1alpha1.PreemptNever)
	if spec.NamespaceCeiling && spec.Sharing.Unlimited {
		problems.Addf(at("namespaceCeiling"), "cannot be combined with unlimited borrowing; ignored")
		spec.NamespaceCeiling = false
	}
	return problems
}

// sanitizer removes values that are out of bounds, and reports them.
type sanitizer struct{ problems *governance.FieldErrors }

func (s sanitizer) report(path, format string, args ...any) { s.problems.Addf(path, format, args...) }

// text clears a text with more than maxLength characters.
func (s sanitizer) text(text *string, path string, maxLength int) {
	if n := utf8.RuneCountInString(*text); n > maxLength {
		s.report(path, "has %d characters; the limit is %d. Ignored", n, maxLength)
		*text = ""
	}
}

// oneOf clears a value that is not one of words. The first word is the default.
func oneOf[T ~string](s sanitizer, value *T, path string, words ...T) {
	if *value == "" || slices.Contains(words, *value) {
		return
	}
	var names []string
	for _, w := range words {
		names = append(names, string(w))
	}
	s.report(path, "is %s; it must be %s. The default %s is used", document.Quote(string(*value)), strings.Join(names, " or "), names[0])
	*value = ""
}

func (s sanitizer) members(members []v1alpha1.Member, path string) (kept []v1alpha1.Member) {
	for i, m := range members {
		at := document.Index(path, i)
		switch {
		case len(kept) == v1alpha1.MaxMembers:
			s.report(path, "has %d members; the first %d were imported", len(members), v1alpha1.MaxMembers)
			return kept
		case m.Kind != "User" && m.Kind != "Group":
			s.report(at, "is neither a User nor a Group; ignored")
		case m.Name == "" || utf8.RuneCountInString(m.Name) > v1alpha1.MaxMemberName:
			s.report(at, "has no name of 1 to %d characters; ignored", v1alpha1.MaxMemberName)
		case strings.HasPrefix(m.Name, "system:"):
			s.report(at, "names that start with system: are reserved by Kubernetes and cannot be members; ignored")
		default:
			kept = append(kept, m)
		}
	}
	return kept
}

// shares removes a share that would lose a member, since a share without members is open
// to the whole team.
func (s sanitizer) shares(shares []v1alpha1.Share, path string) (kept []v1alpha1.Share) {
	seen := map[string]bool{}
	for i, share := range shares {
		at := document.Index(path, i)
		switch {
		case len(kept) == v1alpha1.MaxShares:
			s.report(path, "has %d shares; the first %d were imported", len(shares), v1alpha1.MaxShares)
			return kept
		case len(share.Name) > v1alpha1.MaxShareName || !v1alpha1.ValidName(share.Name):
			s.report(at, "%s is not a valid name of a share: use up to %d lower-case letters, digits and hyphens; ignored", document.Quote(share.Name), v1alpha1.MaxShareName)
		case seen[share.Name]:
			s.report(at, "share %s is listed twice; ignored", share.Name)
		case share.Weight < 1 || share.Weight > v1alpha1.MaxShareWeight:
			s.report(at, "the weight of share %s is not from 1 to %d; ignored", share.Name, v1alpha1.MaxShareWeight)
		case len(share.Members) > v1alpha1.MaxShareMembers:
			s.report(at, "share %s has %d members, and at most %d fit; ignored", share.Name, len(share.Members), v1alpha1.MaxShareMembers)
		case len(s.members(share.Members, document.Child(at, "members"))) < len(share.Members):
			s.report(at, "share %s is ignored, because it would have other members", share.Name)
		default:
			seen[share.Name] = true
			kept = append(kept, share)
		}
	}
	return kept
}

func (s sanitizer) sharing(share *v1alpha1.Sharing, path string) {
	at := func(name string) string { return document.Child(path, name) }
	oneOf(s, &share.Strategy, at("strategy"), v1alpha1.LendAndBorrow, v1alpha1.Lend, v1alpha1.DontLend)
	if p := share.BorrowLimitPercent; p != nil && (*p < 0 || *p > v1alpha1.MaxBorrowLimitPercent) {
		s.report(at("borrowLimitPercent"), "must be from 0 to 10,000; %d is used", v1alpha1.DefaultBorrowLimitPercent)
		share.BorrowLimitPercent = nil
	}
	if share.Strategy == v1alpha1.Lend || share.Strategy == v1alpha1.DontLend {
		s.unused(share, path)
		return
	}
	if share.Unlimited && share.BorrowLimitPercent != nil {
		s.report(at("unlimited"), "cannot be combined with a percentage; ignored, the percentage is used")
		share.Unlimited = false
	}
	share.BorrowLimits = s.rows(share.BorrowLimits, at("borrowLimits"))
}

// unused removes the borrow limits of a team that cannot borrow.
func (s sanitizer) unused(share *v1alpha1.Sharing, path string) {
	const problem = "has no effect without LendAndBorrow; ignored"
	if share.BorrowLimitPercent != nil {
		s.report(document.Child(path, "borrowLimitPercent"), problem)
	}
	if share.Unlimited {
		s.report(document.Child(path, "unlimited"), problem)
	}
	if len(share.BorrowLimits) > 0 {
		s.report(document.Child(path, "borrowLimits"), problem)
	}
	*share = v1alpha1.Sharing{Strategy: share.Strategy}
}
