package allocations

import (
	"net/url"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/handlers/forms"
)

// These bound what one request can make the server look at. Each is more than
// an allocation takes, so that too many can be told as such.
const (
	maxPostedRows    = 50
	maxPostedMembers = 600
)

// allocationForm is the form as typed.
type allocationForm struct {
	request   string            // id of the form
	submitted bool              // whether it was tried to save: then all that is wrong is told
	resumed   bool              // whether it comes back after signing in again
	typed     bool              // whether its values were typed, rather than read from what is saved
	lost      bool              // whether the address has values that cannot be shown
	tried     bool              // whether the address says that it was invalid just now
	refused   *governance.Error // why it was not saved, where the address says so
	imported  forms.Imported

	restores, reason string  // the version that it was filled in with, and why it is saved
	earlier          *edited // that version

	edits               *edited // what it changes; nil when it makes a new one
	version, generation string  // of the allocation that was read, when it is changed

	team, displayName, description, activation string
	namespace, weight                          string
	members                                    []formMember

	rows, limits                  []formRow
	pools                         []formPool
	strategy, percent, preemption string
	unlimited                     bool
	ceiling, defaultQueue         bool
}

// formMember is one member as typed.
type formMember struct{ kind, name string }

// formRow is one row as typed: quota, or a borrow limit. The type names an
// instance type or a pool.
type formRow struct {
	instanceType, instances, accelerators, vcpu, memory, profile, count string
	// exact is the memory to the byte, where its text is rounded: what nobody
	// touched is saved as it was.
	exact string
}

// formPool is a pool to be made.
type formPool struct{ name, kind, value string }

// Fields are the inputs of a row by the last part of their names.
func (r *formRow) Fields() map[string]*string {
	return map[string]*string{
		"type": &r.instanceType, "instances": &r.instances, "accelerators": &r.accelerators,
		"vcpu": &r.vcpu, "memory": &r.memory, "profile": &r.profile, "count": &r.count, "exact": &r.exact,
	}
}

func (m *formMember) Fields() map[string]*string {
	return map[string]*string{"kind": &m.kind, "name": &m.name}
}

func (p *formPool) Fields() map[string]*string {
	return map[string]*string{"name": &p.name, "kind": &p.kind, "value": &p.value}
}

// empty tells whether nothing was typed into the row.
func (r formRow) empty() bool {
	r.exact = ""
	return r == formRow{}
}

// given tells whether any figure was typed.
func (r formRow) given() bool {
	r.instanceType = ""
	return !r.empty()
}

// complete tells whether a row has a type and a figure.
func (r formRow) complete() bool { return r.instanceType != "" && r.given() }

// texts are the inputs that stand once, by name.
func (f *allocationForm) texts() map[string]*string {
	return map[string]*string{
		"restores": &f.restores, "reason": &f.reason,
		"request-id": &f.request, "version": &f.version, "generation": &f.generation,
		"team": &f.team, "display-name": &f.displayName, "description": &f.description, "activation": &f.activation,
		"namespace": &f.namespace, "weight": &f.weight,
		"strategy": &f.strategy, "borrow-percent": &f.percent, "preemption": &f.preemption,
	}
}

// checks are the inputs that are ticked or not, by name.
func (f *allocationForm) checks() map[string]*bool {
	return map[string]*bool{"submitted": &f.submitted, "resumed": &f.resumed, "unlimited": &f.unlimited, "ceiling": &f.ceiling, "default-queue": &f.defaultQueue}
}

func readAllocationForm(values url.Values) allocationForm {
	form := allocationForm{typed: true, tried: values.Get(forms.TriedField) == "true", refused: forms.RefusalOf(values)}
	for name, field := range form.texts() {
		*field = values.Get(name)
	}
	for name, field := range form.checks() {
		*field = values.Get(name) == "true"
	}
	form.reason = forms.ReasonText(form.reason)
	form.team, form.namespace = strings.TrimSpace(form.team), strings.TrimSpace(form.namespace)
	form.rows = forms.ReadRows[formRow](values, "row-", maxPostedRows)
	form.limits = forms.ReadRows[formRow](values, "limit-", maxPostedRows)
	form.members = forms.ReadRows[formMember](values, "member-", maxPostedMembers)
	form.pools = forms.ReadRows[formPool](values, "new-pool-", maxPostedRows)
	form.imported.Read(values)
	return form
}

// values are what readAllocationForm reads: a page in between keeps them in
// hidden inputs.
func (f *allocationForm) values() url.Values {
	values := url.Values{}
	for name, field := range f.texts() {
		values.Set(name, *field)
	}
	for name, field := range f.checks() {
		if *field {
			values.Set(name, "true")
		}
	}
	forms.WriteRows(values, "row-", f.rows)
	forms.WriteRows(values, "limit-", f.limits)
	forms.WriteRows(values, "member-", f.members)
	forms.WriteRows(values, "new-pool-", f.pools)
	for _, field := range f.imported.Fields() {
		values.Add(field.Name, field.Value)
	}
	return values
}

// do carries out one of the form's smaller actions.
func (f *allocationForm) do(action string, types catalog.Catalog) {
	name, argument, _ := strings.Cut(action, ":")
	switch name {
	case "add-row":
		f.rows = forms.Add(f.rows, formRow{}, v1alpha1.MaxQuotaRows)
	case "add-limit":
		f.limits = forms.Add(f.limits, formRow{}, v1alpha1.MaxQuotaRows)
	case "add-member":
		f.members = forms.Add(f.members, formMember{kind: "Group"}, v1alpha1.MaxMembers)
	case "remove-row":
		f.rows = forms.Remove(f.rows, argument)
	case "remove-limit":
		f.limits = forms.Remove(f.limits, argument)
	case "remove-member":
		f.members = forms.Remove(f.members, argument)
	case "reset":
		start, part := argument[:max(0, strings.LastIndexByte(argument, '-'))], argument[strings.LastIndexByte(argument, '-')+1:]
		if row := f.row(start); row != nil && row.Fields()[part] != nil {
			*row.Fields()[part] = ""
		}
	case "make-pool":
		if row := f.row(argument); row != nil {
			f.makePool(row, types)
		}
	}
	f.dropPools()
}

// row finds a row by its id, such as row-0 or limit-1.
func (f *allocationForm) row(id string) *formRow {
	list, number, _ := strings.Cut(id, "-")
	rows := map[string][]formRow{"row": f.rows, "limit": f.limits}[list]
	if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(rows) {
		return &rows[i]
	}
	return nil
}
