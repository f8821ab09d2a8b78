package policy

import (
	"fmt"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/forms"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rulesPath     = "spec.alerts.rules"
	receiversPath = "spec.alerts.receivers"
)

// ruleRow is an alert rule as typed: class is set for tasks of one priority class, and limit
// is a time or a number that differs from the default.
type ruleRow struct{ rule, class, on, limit string }

func (r *ruleRow) Fields() map[string]*string {
	return map[string]*string{"rule": &r.rule, "class": &r.class, "on": &r.on, "limit": &r.limit}
}

// empty reports whether a row for a priority class has nothing typed.
func (r ruleRow) empty() bool { return r.class == "" && r.limit == "" }

// classRule is a new row for a priority class.
var classRule = ruleRow{rule: string(alerts.TaskWaits), on: "true"}

// ofDepartment begins the choice of a department in the menu of teams, before its name.
const ofDepartment = "department/"

// receiverRow is a receiver as typed. to has addresses with commas between, and team may be a
// department.
type receiverRow struct{ name, kind, secret, to, team, severity, notices string }

func (r *receiverRow) Fields() map[string]*string {
	return map[string]*string{"name": &r.name, "type": &r.kind, "secret": &r.secret, "to": &r.to, "team": &r.team, "severity": &r.severity, "notices": &r.notices}
}

// empty reports whether nothing was typed; the type always has a value.
func (r receiverRow) empty() bool { return r.name == "" && r.secret == "" && r.to == "" }

// allRules returns a row for each rule of package alerts, in their order, and then those for
// priority classes. A rule without a row is on.
func allRules(rows []ruleRow) []ruleRow {
	var all []ruleRow
	for _, d := range alerts.Rules {
		one := ruleRow{rule: string(d.Rule), on: "true"}
		for i, row := range rows {
			if i < len(alerts.Rules) && row.rule == one.rule && row.class == "" {
				one = row
			}
		}
		all = append(all, one)
	}
	for i, row := range rows {
		if i >= len(alerts.Rules) || row.class != "" {
			row.rule = classRule.rule
			all = append(all, row)
		}
	}
	return all
}

// alertRows returns the rows of saved alerts.
func alertRows(a *v1alpha1.Alerts) (rules []ruleRow, receivers []receiverRow) {
	rules = allRules(nil)
	if a == nil {
		return rules, nil
	}
	for _, r := range a.Rules {
		row := ruleRow{rule: r.Rule, class: r.PriorityClass, on: "true"}
		switch {
		case r.Off:
			row.on = ""
		case r.After != nil:
			row.limit = describe.Duration(r.After)
		case r.Count != nil:
			row.limit = strconv.Itoa(int(*r.Count))
		}
		if row.class != "" {
			rules = append(rules, row)
			continue
		}
		for i := range alerts.Rules {
			if rules[i].rule == row.rule {
				rules[i] = row
			}
		}
	}
	for _, r := range a.Receivers {
		team := r.Team
		if r.Department != "" {
			team = ofDepartment + r.Department
		}
		receivers = append(receivers, receiverRow{name: r.Name, kind: string(r.Type), secret: r.SecretName, to: strings.Join(r.To, ", "), team: team, severity: r.Severity, notices: string(r.Notices)})
	}
	return rules, receivers
}

// set reports whether a row is an entry of the policy: it differs from the default.
func (f *policyForm) set(i int) bool {
	row := f.rules[i]
	if i < len(alerts.Rules) {
		return row.on == "" || row.limit != ""
	}
	return !row.empty()
}

// setRules returns the rows that are entries of the policy.
func (f *policyForm) setRules() (rows []int) {
	for i := range f.rules {
		if f.set(i) {
			rows = append(rows, i)
		}
	}
	return rows
}

func (f *policyForm) parseAlerts(spec *v1alpha1.ClusterPolicySpec, wrong *governance.FieldErrors) {
	var a v1alpha1.Alerts
	for _, i := range f.setRules() {
		row := f.rules[i]
		rule := v1alpha1.AlertRule{Rule: row.rule, PriorityClass: row.class, Off: row.on == ""}
		if !rule.Off && row.limit != "" {
			wrong.Add(fmt.Sprintf("%s[%d].after", rulesPath, i), parseLimit(&rule, row.limit))
		}
		a.Rules = append(a.Rules, rule)
	}
	for _, row := range f.receivers {
		if row.empty() {
			continue
		}
		r := v1alpha1.AlertReceiver{Name: row.name, Type: v1alpha1.AlertReceiverType(row.kind), SecretName: row.secret, Severity: row.severity, Notices: v1alpha1.ReceiverNotices(row.notices)}
		if department, ok := strings.CutPrefix(row.team, ofDepartment); ok {
			r.Department = department
		} else {
			r.Team = row.team
		}
		for to := range strings.SplitSeq(row.to, ",") {
			if to = strings.TrimSpace(to); to != "" {
				r.To = append(r.To, to)
			}
		}
		a.Receivers = append(a.Receivers, r)
	}
	if len(a.Rules)+len(a.Receivers) > 0 {
		spec.Alerts = &a
	}
}

// parseLimit parses the limit of a rule: a number for those that count, else a time.
func parseLimit(rule *v1alpha1.AlertRule, text string) (problem string) {
	if d, _ := alerts.Describe(alerts.Rule(rule.Rule)); d.Counts() {
		rule.Count, problem = forms.ParseCount(text, nil)
		return problem
	}
	after, problem := forms.ParseDuration(text)
	if problem == "" {
		rule.After = &metav1.Duration{Duration: after.Duration}
	}
	return problem
}
