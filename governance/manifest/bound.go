package manifest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
	"kuota.dev/kuota/governance/quota"
)

// BoundName empties a team name that no team can have.
func SanitizeName(name *string, path string) (wrong document.Problems) {
	if problem := quota.CheckTeamName(*name); problem != "" {
		if *name == "" {
			problem = "is missing: " + problem
		}
		wrong.Add(path, "%s", problem)
		*name = ""
	}
	return wrong
}

// BoundSpec takes out of the spec of an allocation what its schema refuses,
// and tells of it.
func SanitizeSpec(spec *v1alpha1.ComputeAllocationSpec, path string) (wrong document.Problems) {
	b := bounder{&wrong}
	at := func(name string) string { return document.Child(path, name) }
	if b.text(&spec.DisplayName, at("displayName"), v1alpha1.MaxDisplayName); strings.ContainsFunc(spec.DisplayName, unicode.IsControl) {
		wrong.Add(at("displayName"), "has line breaks or control characters; ignored")
		spec.DisplayName = ""
	}
	b.text(&spec.Description, at("description"), v1alpha1.MaxDescription)
	oneOf(b, &spec.Activation, at("activation"), v1alpha1.Active, v1alpha1.Hold, v1alpha1.Drain)
	if n := spec.Namespace; n != "" && (len(n) > v1alpha1.MaxLabelValue || !v1alpha1.ValidName(n) || strings.HasPrefix(n, "kube-") || slices.Contains([]string{"default", "kueue-system", "kuota-system"}, n)) {
		wrong.Add(at("namespace"), "%s cannot be the namespace of a team; ignored", document.Quote(n))
		spec.Namespace = ""
	}
	spec.Members = b.members(spec.Members, at("members"))
	if w := spec.FairShareWeight; w < 0 || w > v1alpha1.MaxWeight {
		wrong.Add(at("fairShareWeight"), "must be from 0 to 100; 0 is used")
		spec.FairShareWeight = 0
	}
	spec.Quota = b.rows(spec.Quota, at("quota"))
	b.sharing(&spec.Sharing, at("sharing"))
	oneOf(b, &spec.Preemption.WithinTeam, at("preemption.withinTeam"), v1alpha1.PreemptLowerPriority, v1alpha1.PreemptNever)
	if spec.NamespaceCeiling && spec.Sharing.Unlimited {
		wrong.Add(at("namespaceCeiling"), "cannot be combined with unlimited borrowing; ignored")
		spec.NamespaceCeiling = false
	}
	return wrong
}

// bounder takes out what is beyond bounds.
type bounder struct{ wrong *document.Problems }

func (b bounder) tell(path, format string, args ...any) { b.wrong.Add(path, format, args...) }

// text is left out where it is too long.
func (b bounder) text(text *string, path string, most int) {
	if n := utf8.RuneCountInString(*text); n > most {
		b.tell(path, "has %d characters; the limit is %d. Ignored", n, most)
		*text = ""
	}
}

// oneOf leaves the default where something else stands.
func oneOf[T ~string](b bounder, value *T, path string, words ...T) {
	if *value == "" || slices.Contains(words, *value) {
		return
	}
	var names []string
	for _, w := range words {
		names = append(names, string(w))
	}
	b.tell(path, "is %s; it must be %s. The default %s is used", document.Quote(string(*value)), strings.Join(names, " or "), names[0])
	*value = ""
}

func (b bounder) members(members []v1alpha1.Member, path string) (kept []v1alpha1.Member) {
	for i, m := range members {
		at := document.Index(path, i)
		switch {
		case len(kept) == v1alpha1.MaxMembers:
			b.tell(path, "has %d members; the first %d were imported", len(members), v1alpha1.MaxMembers)
			return kept
		case m.Kind != "User" && m.Kind != "Group":
			b.tell(at, "is neither a User nor a Group; ignored")
		case m.Name == "" || utf8.RuneCountInString(m.Name) > v1alpha1.MaxMemberName:
			b.tell(at, "has no name of 1 to %d characters; ignored", v1alpha1.MaxMemberName)
		case strings.HasPrefix(m.Name, "system:"):
			b.tell(at, "names that start with system: are reserved by Kubernetes and cannot be members; ignored")
		default:
			kept = append(kept, m)
		}
	}
	return kept
}

func (b bounder) sharing(s *v1alpha1.Sharing, path string) {
	at := func(name string) string { return document.Child(path, name) }
	oneOf(b, &s.Strategy, at("strategy"), v1alpha1.LendAndBorrow, v1alpha1.Lend, v1alpha1.DontLend)
	if p := s.BorrowLimitPercent; p != nil && (*p < 0 || *p > v1alpha1.MaxBorrowLimitPercent) {
		b.tell(at("borrowLimitPercent"), "must be from 0 to 10,000; %d is used", v1alpha1.DefaultBorrowLimitPercent)
		s.BorrowLimitPercent = nil
	}
	if s.Strategy == v1alpha1.Lend || s.Strategy == v1alpha1.DontLend {
		b.unused(s, path)
		return
	}
	if s.Unlimited && s.BorrowLimitPercent != nil {
		b.tell(at("unlimited"), "cannot be combined with a percentage; ignored, the percentage is used")
		s.Unlimited = false
	}
	s.BorrowLimits = b.rows(s.BorrowLimits, at("borrowLimits"))
}

// unused leaves out the limits of a team that borrows nothing.
func (b bounder) unused(s *v1alpha1.Sharing, path string) {
	const problem = "has no effect without LendAndBorrow; ignored"
	if s.BorrowLimitPercent != nil {
		b.tell(document.Child(path, "borrowLimitPercent"), problem)
	}
	if s.Unlimited {
		b.tell(document.Child(path, "unlimited"), problem)
	}
	if len(s.BorrowLimits) > 0 {
		b.tell(document.Child(path, "borrowLimits"), problem)
	}
	*s = v1alpha1.Sharing{Strategy: s.Strategy}
}
