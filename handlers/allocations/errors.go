package allocations

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
)

// inputs says, for each path of the resource, which input of the form holds it
// and what the summary of errors calls it.
var inputs = map[string]struct{ id, label string }{
	"metadata.name":                   {"team", "Team name"},
	"spec.namespace":                  {"namespace", "Namespace"},
	"spec.displayName":                {"display-name", "Display name"},
	"spec.description":                {"description", "Description"},
	"spec.activation":                 {"activation", "Activation"},
	"spec.members":                    {"add-member", "Members"},
	"spec.fairShareWeight":            {"weight", "Fair-share weight"},
	"spec.quota":                      {"add-row", "Allocations"},
	"spec.sharing.strategy":           {"strategy", "Lending and borrowing"},
	"spec.sharing.borrowLimitPercent": {"borrow-percent", "Borrow limit"},
	"spec.sharing.unlimited":          {"borrow-percent", "Borrow limit"},
	"spec.sharing.borrowLimits":       {"add-limit", "Absolute limits"},
	"spec.preemption.withinTeam":      {"preemption", "Preemption"},
	"spec.namespaceCeiling":           {"ceiling", "Namespace ceiling"},
	"spec.defaultQueue":               {"default-queue", "Default queue"},
}

// lists are the paths that there are several of, with the start of their
// inputs' ids and what the summary calls one.
var lists = map[string]struct{ id, label string }{
	"quota":                {"row", "Row"},
	"sharing.borrowLimits": {"limit", "Borrow limit"},
	"members":              {"member", "Member"},
}

// rowInputs says the same for the fields of a row.
var rowInputs = map[string]struct{ part, label string }{
	"":                  {"", ""},
	"instanceType":      {"-type", ", instance type"},
	"pool":              {"-type", ", instance type"},
	"instances":         {"-instances", ", instances"},
	"accelerators":      {"-accelerators", ", accelerators"},
	"vCPU":              {"-vcpu", ", vCPU"},
	"memory":            {"-memory", ", memory"},
	"partition":         {"-count", ", parts of GPUs"},
	"partition.profile": {"-profile", ", profile"},
	"partition.count":   {"-count", ", how many parts"},
}

// listPath takes apart the path of one of several.
var listPath = regexp.MustCompile(`^spec\.(quota|sharing\.borrowLimits|members)\[([0-9]+)\]\.?(.*)$`)

// input finds the input that holds a path; id is empty when none does.
func input(path string) (id, label string) {
	if match := listPath.FindStringSubmatch(path); match != nil {
		list, field := lists[match[1]], rowInputs[match[3]]
		if match[1] == "members" {
			field.part, field.label = "-name", ""
		}
		number, _ := strconv.Atoi(match[2])
		return list.id + "-" + match[2] + field.part, list.label + " " + strconv.Itoa(number+1) + field.label
	}
	known := inputs[path]
	return known.id, cmp.Or(known.label, path)
}

// byField gives each input its first error.
func byField(wrong []governance.FieldError) map[string]string {
	errs := map[string]string{}
	for _, w := range wrong {
		if id, _ := input(w.Path); errs[id] == "" {
			errs[id] = format.Sentence(w.Message)
		}
	}
	return errs
}

// inWords writes the sentences of a condition as the page would: places are
// named as the form names them, and a team's name needs no place.
func inWords(message string) string {
	return format.Capitalize(forms.SpecPaths.ReplaceAllStringFunc(message, func(path string) string {
		id, label := input(strings.TrimSuffix(path, ": "))
		if id == "team" || id == "namespace" {
			return ""
		}
		return label + ": "
	}))
}

// messages is the summary of all that is wrong, each thing once. What belongs
// to no input that is on the page leads nowhere.
func messages(wrong []governance.FieldError, shown func(id string) bool) []views.Message {
	var all []views.Message
	for _, w := range wrong {
		id, label := input(w.Path)
		if !shown(id) {
			id = ""
		}
		message := views.Message{Field: id, Label: label, Text: w.Message}
		if !slices.Contains(all, message) {
			all = append(all, message)
		}
	}
	slices.SortStableFunc(all, func(a, b views.Message) int { return cmp.Compare(place(a.Field), place(b.Field)) })
	return all
}

// order is how the inputs stand on the page; the rows stand at "row-".
var order = []string{
	"team", "display-name", "description", "activation", "namespace", "weight", "member-", "add-member",
	"row-", "add-row", "strategy", "borrow-percent", "limit-", "add-limit", "preemption", "ceiling", "default-queue",
}

// place is where an input stands on the page. Rows keep the order they are
// told in.
func place(id string) int {
	return slices.IndexFunc(order, func(start string) bool { return strings.HasPrefix(id, start) })
}
