package imports

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
)

// The columns of a table of teams that are no pools, in lower case. A member whose name begins
// with "user:" is a user, all others are groups.
const (
	columnTeam        = "team"
	columnName        = "name"
	columnDescription = "description"
	columnDepartment  = "department"
	columnMembers     = "members"
	columnWeight      = "weight"
	columnBorrowLimit = "borrow limit"
)

var columns = []string{columnTeam, columnName, columnDescription, columnDepartment, columnMembers, columnWeight, columnBorrowLimit}

// instancesOf ends the heading of a column with numbers of instances; other pools have numbers of
// accelerators.
const instancesOf = " instances"

// isTable reports whether a text is a table of teams: its first line has a cell "team".
func isTable(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return slices.ContainsFunc(strings.FieldsFunc(string(line), isDelimiter), func(cell string) bool {
		return strings.EqualFold(strings.Trim(cell, " \"\r\ufeff"), columnTeam)
	})
}

func isDelimiter(r rune) bool { return r == '\t' || r == ',' || r == ';' }

// readTable reads a table of teams as spreadsheets copy it: with tabs, commas or semicolons
// between the cells of a line, and a heading. A row sets what its columns have, and keeps the rest
// of a team that exists.
func (r *Result) readTable(text []byte, pool func(string) (string, string)) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	line, _, _ := bytes.Cut(text, []byte("\n"))
	lines := csv.NewReader(bytes.NewReader(text))
	lines.FieldsPerRecord = -1
	for _, delimiter := range "\t;," { // the last one that the heading has
		if bytes.ContainsRune(line, delimiter) {
			lines.Comma = delimiter
			break
		}
	}
	heading, err := lines.Read()
	if err != nil {
		r.Problems.Addf("", "the heading of the table cannot be read: %v", err)
		return
	}
	for i := range heading {
		heading[i] = strings.TrimSpace(heading[i])
		name, whole := strings.CutSuffix(heading[i], instancesOf)
		if name == "" || slices.Contains(columns, strings.ToLower(heading[i])) {
			continue
		}
		found, problem := pool(name)
		if problem != "" {
			r.Problems.Add(fmt.Sprintf("heading %q", heading[i]), problem)
			continue
		}
		if heading[i] = found; whole {
			heading[i] += instancesOf
		}
	}
	if len(r.Problems) > 0 {
		return
	}
	for {
		cells, err := lines.Read()
		n := 0
		if err == nil {
			n, _ = lines.FieldPos(0)
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.Problems.Addf("", "the table cannot be read any further: %v", err)
			return
		case strings.TrimSpace(strings.Join(cells, "")) == "":
		case len(r.Objects) == maxObjects:
			r.Problems.Addf(fmt.Sprintf("line %d", n), "was not imported, nor the lines after it: at most %d teams are imported at once", maxObjects)
			return
		default:
			r.add(teamOf(heading, cells), fmt.Sprintf("line %d", n))
		}
	}
}

// teamOf reads a row of a table.
func teamOf(heading, cells []string) Object {
	o := Object{Allocation: &v1alpha1.ComputeAllocation{}}
	var set []func(*v1alpha1.ComputeAllocationSpec)
	var wrong governance.FieldErrors
	for i, column := range heading {
		text := ""
		if i < len(cells) {
			text = strings.TrimSpace(cells[i])
		}
		wrong.Add(column, func() (problem string) {
			switch strings.ToLower(column) {
			case columnTeam:
				o.Allocation.Name = text
			case columnName:
				set = append(set, func(s *v1alpha1.ComputeAllocationSpec) { s.DisplayName = text })
			case columnDescription:
				set = append(set, func(s *v1alpha1.ComputeAllocationSpec) { s.Description = text })
			case columnDepartment:
				set = append(set, func(s *v1alpha1.ComputeAllocationSpec) { s.Department = text })
			case columnMembers:
				set = append(set, func(s *v1alpha1.ComputeAllocationSpec) { s.Members = membersOf(text) })
			case columnWeight:
				n, problem := wholeOf(text, v1alpha1.MaxWeight)
				if problem == "" {
					set = append(set, func(s *v1alpha1.ComputeAllocationSpec) { s.FairShareWeight = int32(n) })
				}
				return problem
			case columnBorrowLimit:
				n, problem := wholeOf(strings.TrimSuffix(text, "%"), v1alpha1.MaxBorrowLimitPercent)
				if problem == "" && text != "" {
					percent := int32(n)
					set = append(set, func(s *v1alpha1.ComputeAllocationSpec) {
						s.Sharing.BorrowLimitPercent, s.Sharing.Unlimited = &percent, false
					})
				}
				return problem
			case "":
				if text != "" {
					return "has a value and no heading; left out"
				}
			default:
				n, problem := wholeOf(text, v1alpha1.MaxAmount)
				if problem == "" {
					set = append(set, func(s *v1alpha1.ComputeAllocationSpec) { setQuota(s, column, n) })
				}
				return problem
			}
			return ""
		}())
	}
	o.Problems = wrong
	o.Overlay = func(s *v1alpha1.ComputeAllocationSpec) {
		for _, set := range set {
			set(s)
		}
	}
	o.Overlay(&o.Allocation.Spec)
	return o
}

// wholeOf parses a number of a cell; an empty one is 0.
func wholeOf(text string, most int64) (n int64, problem string) {
	if text == "" {
		return 0, ""
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Sprintf("is %q, and not a whole number up to %d", text, most)
	}
	return n, ""
}

// membersOf parses names with commas or semicolons between.
func membersOf(text string) (members []v1alpha1.Member) {
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		user, is := strings.CutPrefix(name, "user:")
		if is {
			members = append(members, v1alpha1.Member{Kind: "User", Name: strings.TrimSpace(user)})
			continue
		}
		members = append(members, v1alpha1.Member{Kind: "Group", Name: strings.TrimSpace(strings.TrimPrefix(name, "group:"))})
	}
	return members
}

// setQuota sets the quota of a pool, which is an instance type if its name has a dot, and keeps its
// place in the order of preference. 0 is no quota.
func setQuota(s *v1alpha1.ComputeAllocationSpec, column string, n int64) {
	name, whole := strings.CutSuffix(column, instancesOf)
	s.Quota = slices.Clone(s.Quota)
	at := slices.IndexFunc(s.Quota, func(row v1alpha1.QuotaRow) bool { return row.Pool == name || row.InstanceType == name })
	switch {
	case n == 0 && at >= 0:
		s.Quota = slices.Delete(s.Quota, at, at+1)
		return
	case n == 0:
		return
	case at < 0 && strings.Contains(name, "."):
		at, s.Quota = len(s.Quota), append(s.Quota, v1alpha1.QuotaRow{InstanceType: name})
	case at < 0:
		at, s.Quota = len(s.Quota), append(s.Quota, v1alpha1.QuotaRow{Pool: name})
	}
	if s.Quota[at].Instances, s.Quota[at].Accelerators = nil, &n; whole {
		s.Quota[at].Instances, s.Quota[at].Accelerators = &n, nil
	}
}
