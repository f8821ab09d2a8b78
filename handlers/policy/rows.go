package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
	policyviews "kuota.dev/kuota/views/policy"
	"kuota.dev/kuota/views/ui"
)

// rowsOf maps the rows of a form to its page.
type rowsOf struct {
	form  *policyForm
	state policy.State
	errs  map[string]string // by the id of an input
	present
	notes map[string]string // warnings, by the id of an input
}

// notes returns the warnings about the typed values, by input.
func (f *policyForm) notes(state policy.State, secrets []string) map[string]string {
	spec := f.policy(state).Spec
	return inputs.ByField(f.formPaths(policy.Warnings(&spec, state, secrets)), policySentence)
}

// list returns a list of rows of a kind, of which at most most fit.
func (r rowsOf) list(kind, row, first string, rows []policyviews.Row, most int) policyviews.RowList {
	l := policyviews.RowList{Kind: kind, ID: kind + "s", Row: row, Label: row + "s", First: first, Rows: rows, Add: "Add " + strings.ToLower(row), Error: r.errs[kind+"s"]}
	if len(rows) >= most {
		l.Full = "The policy has the maximum number of " + strings.ToLower(row) + "s."
	}
	return l
}

// row returns a row with these cells, its error, and the warnings about them.
func (r rowsOf) row(kind string, i int, cells ...policyviews.Cell) policyviews.Row {
	id := kind + "-" + strconv.Itoa(i)
	row := policyviews.Row{Error: r.errs[id]}
	for _, cell := range cells {
		cell.Error = r.errs[id+"-"+cell.Part]
		if note := r.notes[id+"-"+cell.Part]; note != "" {
			row.Notes = append(row.Notes, note)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

func typed(part, label, value string, input ui.InputProps) policyviews.Cell {
	return policyviews.Cell{Part: part, Label: label, TextField: views.TextField{Value: value}, Input: input}
}

// menu returns a menu of values and labels, with what is chosen though it is none of them.
func menu(part, label, chosen string, pairs ...string) policyviews.Cell {
	cell := policyviews.Cell{Part: part, Label: label}
	for i := 0; i+1 < len(pairs); i += 2 {
		cell.Options = append(cell.Options, views.Option{Value: pairs[i], Label: pairs[i+1], Selected: pairs[i] == chosen})
	}
	if !slices.ContainsFunc(cell.Options, func(o views.Option) bool { return o.Selected }) {
		cell.Options = append(cell.Options, views.Option{Value: chosen, Label: chosen, Selected: true})
	}
	return cell
}

func (r rowsOf) classes() policyviews.RowList {
	var rows []policyviews.Row
	for i, class := range r.form.classes {
		row := r.row("class", i,
			typed("name", "Name", class.name, ui.InputProps{Code: true, Placeholder: "training"}),
			typed("weight", "Weight", class.weight, ui.InputProps{Numeric: true}),
			typed("description", "Description", class.description, ui.InputProps{}))
		rest := r.row("class", i,
			typed("limit", "Default time limit", class.limit, ui.InputProps{Code: true, Placeholder: "none"}),
			typed("longest", "Longest time limit", class.longest, ui.InputProps{Code: true, Placeholder: "none"}))
		row.Rest, row.RestTitle = rest.Cells, "No time limit"
		if class.limit != "" || class.longest != "" {
			row.RestTitle = "Time limit: " + timeLimit(class)
		}
		if n := r.state.Tasks[class.name]; n > 0 && class.name != "" {
			row.Notes = append(row.Notes, format.Tasks(n)+" with this class now.")
		}
		rows = append(rows, row)
	}
	l := r.list("class", "Class", "name", rows, v1alpha1.MaxPriorityClasses)
	l.ID, l.Label, l.Add, l.NoteID, l.Error = "classes", "Priority classes", "Add priority class", "classes-note", r.errs["classes"]
	if l.Full != "" {
		l.Full = "The policy has the maximum number of priority classes."
	}
	l.Heads = slices.Concat(ui.Heads("Name"), ui.Numbers("Weight"), ui.Heads("Description"))
	return l
}

// timeLimit describes the time limits of a class as typed.
func timeLimit(class classRow) string {
	byDefault := ""
	if class.limit != "" {
		byDefault = class.limit + " by default"
	}
	return format.JoinedBy(", ", byDefault, views.Prefixed("at most ", class.longest))
}

// poolMatches are the ways to match nodes, with an example of each.
var poolMatches = []struct{ value, label, example string }{
	{matchAccelerator, "Accelerator model", "H100"},
	{matchFamily, "Instance family", "ml.g5"},
	{matchTypes, "Instance types", "ml.g5.2xlarge, ml.g5.4xlarge"},
	{matchLabels, "Node labels", "zone=a, rack=4"},
}

func (r rowsOf) pools() *policyviews.RowList {
	var rows []policyviews.Row
	for i, pool := range r.form.pools {
		value, pairs := ui.InputProps{Code: true}, []string{}
		for _, m := range poolMatches {
			pairs = append(pairs, m.value, m.label)
			if m.value == pool.match {
				value.Placeholder = m.example
				if m.value != matchLabels {
					value.List = "pool-" + m.value
				}
			}
		}
		row := r.row("pool", i, typed("name", "Name", pool.name, ui.InputProps{Code: true, Placeholder: "h100"}),
			menu("match", "Nodes with", pool.match, pairs...), typed("value", "Value", pool.value, value))
		if nodes := r.nodes[i]; nodes != "" {
			row.Notes = append(row.Notes, nodes)
		}
		rows = append(rows, row)
	}
	l := r.list("pool", "Pool", "name", rows, v1alpha1.MaxPools)
	l.Heads, l.Empty = ui.Heads("Name", "Nodes with", "Value"), "No pools: each instance type is a pool of its own."
	return &l
}

// poolPairs are the pools that can be chosen, after a first choice.
func (r rowsOf) poolPairs(value, label string) []string {
	pairs := []string{value, label}
	for _, pool := range r.state.Types.Pools() {
		pairs = append(pairs, pool.Name, format.JoinedBy(" · ", pool.Name, nodesOrNone(pool.Nodes)))
	}
	return pairs
}

func (r rowsOf) over() *policyviews.RowList {
	var rows []policyviews.Row
	for i, limit := range r.form.over {
		rows = append(rows, r.row("over", i, menu("pool", "Pool", limit.pool, r.poolPairs(v1alpha1.AllPools, "All other pools")...),
			typed("percent", "Percent more than its nodes have", limit.percent, ui.InputProps{Numeric: true, Placeholder: "0"})))
	}
	l := r.list("over", "Limit", "pool", rows, v1alpha1.MaxPools)
	l.Heads, l.NoteID = slices.Concat(ui.Heads("Pool"), ui.Numbers("At most over capacity, %")), "overs-note"
	l.Empty = "No limits: quota can be more than the nodes have."
	return &l
}

func (r rowsOf) resources() *policyviews.RowList {
	var rows []policyviews.Row
	for i, resource := range r.form.resources {
		rows = append(rows, r.row("resource", i, typed("name", "Name", resource.name, ui.InputProps{Code: true, List: "reported-resources", Placeholder: "example.com/license"}),
			typed("label", "Label", resource.label, ui.InputProps{Placeholder: "licenses"}),
			menu("unit", "Counted as", resource.unit, string(v1alpha1.UnitCount), "Pieces", string(v1alpha1.UnitBytes), "Bytes", unitAccelerators, "Accelerators")))
	}
	l := r.list("resource", "Resource", "name", rows, v1alpha1.MaxListedResources)
	l.Heads, l.NoteID, l.Empty = ui.Heads("Name", "Label", "Counted as"), "resources-note", "No more resources."
	return &l
}

func (r rowsOf) prices() *policyviews.RowList {
	pools := r.poolPairs("", "Choose a pool")
	named := map[string]bool{}
	for _, pool := range r.state.Types.Pools() {
		for name := range pool.Physical {
			named[name] = true
		}
	}
	for _, listed := range resources.AllListed() {
		named[listed.Name] = true
	}
	resources := []string{"", "Choose a resource"}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		resources = append(resources, name, format.ResourceName(name))
	}
	var rows []policyviews.Row
	for i, price := range r.form.prices {
		rows = append(rows, r.row("price", i, menu("pool", "Pool", price.pool, pools...), menu("resource", "Resource", price.resource, resources...),
			typed("from", "From", price.from, ui.InputProps{Code: true, Placeholder: "2026-10-01"}),
			typed("own", "Price of an hour", price.own, ui.InputProps{Numeric: true, Placeholder: "2.50"}),
			typed("borrowed", "Price of a borrowed hour", price.borrowed, ui.InputProps{Numeric: true, Placeholder: "the same"})))
	}
	l := r.list("price", "Price", "pool", rows, v1alpha1.MaxPrices)
	l.Heads, l.NoteID = slices.Concat(ui.Heads("Pool", "Resource", "From"), ui.Numbers("An hour", "Borrowed")), "prices-note"
	l.Empty = "No prices: the usage report has hours without cost."
	return &l
}

func (r rowsOf) rules() (rows []policyviews.RuleRow) {
	for i, d := range alerts.Rules {
		typed := r.form.rules[i]
		rows = append(rows, policyviews.RuleRow{
			Name: typed.rule, Title: d.Title, Meaning: d.Meaning(alerts.Defaults), On: typed.on != "", Usual: d.Limit(alerts.Defaults),
			Limit: views.TextField{Value: typed.limit, Error: r.errs[fmt.Sprintf("rule-%d-limit", i)]},
		})
	}
	return rows
}

func (r rowsOf) classRules() policyviews.RowList {
	classes := []string{"", "Choose a class"}
	if r.state.Policy != nil {
		for _, class := range r.state.Policy.Spec.PriorityClasses {
			classes = append(classes, class.Name, class.Name)
		}
	}
	var rows []policyviews.Row
	for i := len(alerts.Rules); i < len(r.form.rules); i++ {
		rule := r.form.rules[i]
		on := typed("on", "Alert", rule.on, ui.InputProps{})
		on.Check = true
		rows = append(rows, r.row("rule", i, menu("class", "Priority class", rule.class, classes...), on,
			typed("limit", "Waits for longer than", rule.limit, ui.InputProps{Code: true, Placeholder: "10m"})))
	}
	l := r.list("rule", "Class", "class", rows, v1alpha1.MaxAlertRules-len(alerts.Rules))
	l.ID, l.From, l.NoteID = "class-rules", len(alerts.Rules), "class-rules-note"
	l.Heads = ui.Heads("Priority class", "Alert", "Waits for longer than")
	return l
}

func (r rowsOf) receivers() *policyviews.RowList {
	kinds := []string{}
	for _, kind := range v1alpha1.AlertReceiverTypes {
		label := string(kind)
		if kind == v1alpha1.TeamsReceiver {
			label = "Microsoft Teams"
		}
		kinds = append(kinds, string(kind), label)
	}
	teams := []string{"", "All teams"}
	for _, team := range r.state.Teams {
		teams = append(teams, team, team)
	}
	for _, department := range r.state.Departments {
		teams = append(teams, ofDepartment+department, "Department "+department)
	}
	var rows []policyviews.Row
	for i, receiver := range r.form.receivers {
		row := r.row("receiver", i, typed("name", "Name", receiver.name, ui.InputProps{Code: true, Placeholder: "ops"}),
			menu("type", "Type", receiver.kind, kinds...),
			typed("secret", "Secret", receiver.secret, ui.InputProps{Code: true, List: "secret-names"}),
			menu("team", "Team", receiver.team, teams...),
			menu("severity", "Severity", receiver.severity, "", "All", string(alerts.Warning), "Warning and above", string(alerts.Critical), "Critical"),
			menu("notices", "Gets", receiver.notices, "", "Alerts", string(v1alpha1.AlsoNotices), "Alerts and notices", string(v1alpha1.OnlyNotices), "Notices"))
		if receiver.kind == string(v1alpha1.EmailReceiver) && receiver.notices != string(v1alpha1.OnlyNotices) || receiver.to != "" {
			to := r.row("receiver", i, typed("to", "E-mail addresses", receiver.to, ui.InputProps{Code: true, Placeholder: "ops@example.com, ml@example.com"}))
			row.Rest, row.RestTitle, row.RestOpen = to.Cells, "E-mail addresses", true
		}
		rows = append(rows, row)
	}
	l := r.list("receiver", "Receiver", "name", rows, v1alpha1.MaxAlertReceivers)
	l.Heads, l.NoteID = ui.Heads("Name", "Type", "Secret", "Team", "Severity", "Gets"), "receivers-note"
	l.Empty = "No receivers: alerts are shown on their page and in the header."
	return &l
}

// warned returns warnings with the labels of their inputs.
func (f *policyForm) warned(warnings []governance.FieldError) []views.Message {
	return inputs.Summary(f.formPaths(warnings), func(string) bool { return false }, policySentence)
}
