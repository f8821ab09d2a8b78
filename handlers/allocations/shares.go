package allocations

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const sharesPath = "spec.shares"

// maxBatch bounds a scheduling policy of AWS Batch, which addresses of the form contain.
const maxBatch = 8 << 10

// Prefixes of the members of a share in the form. A name without one is a group.
const (
	userPrefix  = "user:"
	groupPrefix = "group:"
)

// sharesOf returns the rows of saved shares.
func sharesOf(shares []v1alpha1.Share) (rows []formShare) {
	for _, s := range shares {
		var lines []string
		for _, m := range s.Members {
			lines = append(lines, map[string]string{"User": userPrefix, "Group": groupPrefix}[m.Kind]+m.Name)
		}
		row := formShare{name: s.Name, weight: strconv.Itoa(int(s.Weight)), members: strings.Join(lines, "\n"), class: s.DefaultPriorityClass, kinds: strings.Join(s.Kinds, ", "), quota: quotaLines(s.Quota)}
		if s.QueueingStrategy == v1alpha1.StrictFIFO {
			row.order = s.QueueingStrategy
		}
		if s.BorrowLimitPercent != nil {
			row.percent = strconv.Itoa(int(*s.BorrowLimitPercent))
		}
		rows = append(rows, row)
	}
	return rows
}

// parseShares parses the rows that are not empty.
func (f *allocationForm) parseShares(types catalog.Catalog, wrong *governance.FieldErrors) (shares []v1alpha1.Share) {
	for i, row := range f.shares {
		if row.empty() {
			continue
		}
		at := fmt.Sprintf("%s[%d].", sharesPath, i)
		share := v1alpha1.Share{Name: row.name, Weight: 1, DefaultPriorityClass: row.class, QueueingStrategy: row.order}
		if strings.TrimSpace(row.kinds) != "" {
			share.Kinds = strings.FieldsFunc(row.kinds, func(r rune) bool { return r == ',' || r == ' ' })
			if slices.ContainsFunc(share.Kinds, func(kind string) bool { return kind[0] < 'A' || kind[0] > 'Z' }) {
				wrong.Add(at+"kinds", "write kinds as Kubernetes does, such as RayJob")
				share.Kinds = nil
			}
		}
		if row.weight != "" {
			weight, problem := forms.ParseWhole(row.weight, 1, v1alpha1.MaxShareWeight)
			wrong.Add(at+"weight", problem)
			share.Weight = int32(weight)
		}
		var problem string
		share.Members, problem = parseShareMembers(row.members)
		wrong.Add(at+"members", problem)
		share.Quota, problem = f.parseWindowQuota(row.quota, types)
		wrong.Add(at+"quota", problem)
		if row.percent != "" {
			percent, problem := forms.ParseWhole(row.percent, 0, v1alpha1.MaxBorrowLimitPercent)
			wrong.Add(at+"borrowLimitPercent", problem)
			share.BorrowLimitPercent = new(int32(percent))
		}
		shares = append(shares, share)
	}
	return shares
}

// parseShareMembers parses the members of a share, one a line.
func parseShareMembers(text string) (members []v1alpha1.Member, problem string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		member := v1alpha1.Member{Kind: "Group", Name: strings.TrimSpace(strings.TrimPrefix(line, groupPrefix))}
		if name, isUser := strings.CutPrefix(line, userPrefix); isUser {
			member = v1alpha1.Member{Kind: "User", Name: strings.TrimSpace(name)}
		}
		switch problem := forms.CheckText(member.Name, v1alpha1.MaxMemberName); {
		case member.Name == "":
			return nil, "a name is missing after " + line
		case problem != "":
			return nil, problem
		case strings.HasPrefix(member.Name, "system:"):
			return nil, "names that start with \"system:\" are reserved by Kubernetes"
		case slices.Contains(members, member):
			return nil, member.Name + " is listed twice; remove one of the two"
		}
		members = append(members, member)
	}
	if len(members) > v1alpha1.MaxShareMembers {
		return nil, fmt.Sprintf("has %d members; at most %d fit. Name groups instead of people", len(members), v1alpha1.MaxShareMembers)
	}
	return members, ""
}

// importBatch replaces the shares by those of the scheduling policy, if it has any. Rows
// keep the rest of a share with the same name.
func (f *allocationForm) importBatch() {
	if len(f.batch) > maxBatch {
		return
	}
	rows := sharesOf(imports.ReadBatch([]byte(f.batch)).Shares)
	if len(rows) == 0 {
		return
	}
	for i := range rows {
		for _, before := range f.shares {
			if before.name == rows[i].name {
				weight := rows[i].weight
				rows[i] = before
				rows[i].weight = weight
			}
		}
	}
	f.shares = rows
}

// batchNotes returns what of the scheduling policy is not imported, or why none is.
func (f *allocationForm) batchNotes(policy *v1alpha1.ClusterPolicy) []string {
	switch {
	case f.batch == "":
		return nil
	case len(f.batch) > maxBatch:
		return []string{fmt.Sprintf("It has more than %d characters. Remove what is not part of fairsharePolicy.", maxBatch)}
	}
	read := imports.ReadBatch([]byte(f.batch))
	notes := read.Notes()
	if read.DecaySeconds > 0 {
		half := describe.Duration(&metav1.Duration{Duration: time.Duration(read.DecaySeconds) * time.Second})
		now := "which does not set it now"
		if policy != nil && policy.Spec.AdmissionFairSharing != nil {
			now = "now " + describe.Duration(policy.Spec.AdmissionFairSharing.UsageHalfLifeTime)
		}
		notes = append(notes, fmt.Sprintf("shareDecaySeconds: the half-life of usage is %s. The cluster policy sets it for all teams, %s.", half, now))
	}
	return notes
}

// shareRows returns the rows of the form.
func (f *allocationForm) shareRows(policy *v1alpha1.ClusterPolicy, errs map[string]string) (rows []allocationviews.TeamShareRow) {
	for i, s := range f.shares {
		id := "share-" + strconv.Itoa(i)
		text := func(part, value string) views.TextField {
			return views.TextField{Value: value, Error: errs[id+"-"+part]}
		}
		rows = append(rows, allocationviews.TeamShareRow{
			Name: text("name", s.name), Weight: text("weight", s.weight), Members: text("members", s.members), Quota: text("quota", s.quota), Percent: text("percent", s.percent),
			Class: classChoice(policy, errs[id+"-class"], s.class), Kinds: text("kinds", s.kinds),
			Order: choice(errs[id+"-order"], s.order, "", "Tasks that fit", v1alpha1.StrictFIFO, "Strict: the first blocks"), Error: errs[id],
		})
	}
	return rows
}

// classChoice is the choice of a priority class for tasks that name none.
func classChoice(policy *v1alpha1.ClusterPolicy, problem, selected string) views.SelectField {
	pairs := []string{"", "None"}
	if policy != nil {
		for _, class := range policy.Spec.PriorityClasses {
			pairs = append(pairs, class.Name, class.Name)
		}
	}
	if !slices.Contains(pairs, selected) {
		pairs = append(pairs, selected, selected+" (unknown)")
	}
	return choice(problem, selected, pairs...)
}

// shareNotes returns what a change of the shares means for the tasks of the team. before
// is nil for a new team.
func shareNotes(before *v1alpha1.ComputeAllocationSpec, wanted *v1alpha1.ComputeAllocation, policy *v1alpha1.ClusterPolicy, naming desired.Naming) (notes []string) {
	var old []v1alpha1.Share
	if before != nil {
		old = before.Shares
	}
	shares := wanted.Spec.Shares
	counts := policy != nil && policy.Spec.AdmissionFairSharing != nil
	ofTeam := func(shares []v1alpha1.Share) bool { // whether a share is one of the team's quota
		return slices.ContainsFunc(shares, func(s v1alpha1.Share) bool { return len(s.Quota) == 0 })
	}
	restart := func() {
		if counts && before != nil {
			notes = append(notes, "Kueue reads the order of an existing queue at startup only, so Kueue restarts once. Running tasks continue.")
		}
	}
	switch was, is := ofTeam(old), ofTeam(shares); {
	case was && !is:
		notes = append(notes, "Tasks of this team are ordered by priority and time again.")
		restart()
	case is && !was:
		notes = append(notes,
			"Usage outranks priority inside this team. The share that used the least by its weight starts its tasks first, and tasks of the share that used the most are preempted first, whatever their priority classes.",
			fmt.Sprintf("The queue %s remains for the whole team, and counts as a share of weight 1.", desired.LocalQueueName(wanted, naming)))
		restart()
	}
	notes = append(notes, quotaNotes(old, shares)...)
	if slices.ContainsFunc(old, func(o v1alpha1.Share) bool {
		return !slices.ContainsFunc(shares, func(s v1alpha1.Share) bool { return s.Name == o.Name })
	}) {
		notes = append(notes, "The queues of removed shares are deleted: admitted tasks continue, and waiting tasks need another queue.")
	}
	if !counts && ofTeam(shares) {
		notes = append(notes, "The cluster policy does not count the usage of shares. Their weights have no effect until it does.")
	}
	if slices.ContainsFunc(shares, func(s v1alpha1.Share) bool { return len(s.Members) > 0 }) && (policy == nil || policy.Spec.Enforcement == v1alpha1.EnforcementNone) {
		notes = append(notes, "The cluster policy does not enforce queues, so the members of shares are not enforced either: all of the team can use each queue.")
	}
	return notes
}

// quotaNotes returns what it means that shares get quota of their own, or lose it.
func quotaNotes(old, shares []v1alpha1.Share) (notes []string) {
	had := map[string]bool{}
	for _, share := range old {
		had[share.Name] = len(share.Quota) > 0
	}
	for _, share := range shares {
		was, existed := had[share.Name]
		switch is := len(share.Quota) > 0; {
		case existed && is && !was:
			notes = append(notes, fmt.Sprintf("Share %s gets a quota of its own, in addition to the team's. Its waiting tasks use that; running ones use the team's quota until they end.", share.Name))
		case existed && was && !is:
			notes = append(notes, fmt.Sprintf("Share %s uses the team's quota again. Its old queue, with its quota, stays until the tasks that run in it have ended.", share.Name))
		case is && !was:
			notes = append(notes, fmt.Sprintf("Share %s has a quota of its own, in addition to the team's.", share.Name))
		}
	}
	return notes
}
