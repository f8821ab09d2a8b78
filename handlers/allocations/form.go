package allocations

import (
	"crypto/rand"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/forms"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of the rows that one request can post. Each is above the limit of an
// allocation, so that too many rows are an error rather than cut.
const (
	maxPostedRows    = 50
	maxPostedMembers = 600
	maxPostedShares  = 60
	maxPostedWindows = 20
)

// allocationForm has the values of the form of an allocation, or of a department, as typed.
type allocationForm struct {
	forms.Form
	kind    formKind
	tree    departments.State // for the menu of departments, and what they have left
	request string            // idempotency key of a creation
	edits   *edited           // the allocation that the form changes; nil for a new one
	earlier *edited           // the version that filled in the form

	team    string
	typed   map[string]string // of fields, by id
	members []formMember

	rows, limits      []formRow
	pools             []formPool
	strategy, percent string
	unlimited         bool
	shares            []formShare
	batch             string // a scheduling policy of AWS Batch, as typed
	windows           []formWindow
	budget            formBudget

	more   bool   // whether an action changed what is under More settings
	verify bool   // whether the effect of saving is simulated now
	shown  string // the fingerprint of the effect that the reader saw; empty for none
	asked  string // why a save was not carried out at once; see ask
}

// formMember is a member. role is that in a department.
type formMember struct{ kind, name, role string }

// formShare is a share. members has a member a line, and quota a row.
type formShare struct{ name, weight, members, class, kinds, quota, percent, order string }

// formRow is a row of quota or a borrow limit. instanceType is the name of an
// instance type or of a pool.
type formRow struct {
	instanceType, instances, accelerators, vcpu, memory, profile, count string
	// exact is the memory in bytes where memory is rounded, so that an unchanged
	// input saves the same quantity.
	exact string
	// offered is "true" for the row of a pool that exists, which every form has: without
	// amounts it is no quota.
	offered string
	// others are the amounts of other resources by name, encoded as a query. Without an
	// amount there is no entry.
	others string
}

// formPool is a pool that is created with the allocation.
type formPool struct{ name, kind, value string }

// Fields returns the inputs of a row by the last part of their names.
func (r *formRow) Fields() map[string]*string {
	return map[string]*string{
		"type": &r.instanceType, "instances": &r.instances, "accelerators": &r.accelerators,
		"vcpu": &r.vcpu, "memory": &r.memory, "profile": &r.profile, "count": &r.count, "exact": &r.exact, "offered": &r.offered, "others": &r.others,
	}
}

// Other reads the input of another resource.
func (r *formRow) Other(part, value string) bool {
	name, ok := strings.CutPrefix(part, "other-")
	if ok && value != "" {
		r.setOther(name, value)
	}
	return ok
}

func (r *formRow) setOther(name, amount string) {
	others, _ := url.ParseQuery(r.others)
	others.Set(name, amount)
	r.others = others.Encode()
}

func (m *formMember) Fields() map[string]*string {
	return map[string]*string{"kind": &m.kind, "name": &m.name, "role": &m.role}
}

func (s *formShare) Fields() map[string]*string {
	return map[string]*string{"name": &s.name, "weight": &s.weight, "members": &s.members, "class": &s.class, "kinds": &s.kinds, "quota": &s.quota, "percent": &s.percent, "order": &s.order}
}

func (s formShare) empty() bool { return s == formShare{} }

func (p *formPool) Fields() map[string]*string {
	return map[string]*string{"name": &p.name, "kind": &p.kind, "value": &p.value}
}

// empty reports whether nothing was typed into the row. In the row of a pool that exists, 0
// is the same.
func (r formRow) empty() bool {
	if r.offered != "" {
		for _, amount := range []*string{&r.instances, &r.accelerators, &r.vcpu, &r.memory} {
			*amount = strings.TrimLeft(*amount, "0")
		}
		return !r.hasAmounts()
	}
	return !r.hasAmounts() && r.instanceType == ""
}

// onlyOffered reports whether it is the row of a pool, and has nothing.
func (r formRow) onlyOffered() bool { return r.offered != "" && r.empty() }

// hasAmounts reports whether any amount was typed.
func (r formRow) hasAmounts() bool {
	r.instanceType, r.exact, r.offered = "", "", ""
	return r != formRow{}
}

// complete reports whether the row has a type and an amount.
func (r formRow) complete() bool { return r.instanceType != "" && r.hasAmounts() }

// texts returns the inputs outside rows that fields cannot read, by name.
func (f *allocationForm) texts() map[string]*string {
	return map[string]*string{
		"request-id": &f.request, "version": &f.Version, "generation": &f.Generation,
		"team": &f.team, "strategy": &f.strategy, "borrow-percent": &f.percent, "batch": &f.batch, "asked": &f.asked,
	}
}

// checks returns the checkboxes by name.
func (f *allocationForm) checks() map[string]*bool {
	return map[string]*bool{"unlimited": &f.unlimited}
}

func readForm(kind formKind, values url.Values) allocationForm {
	form := allocationForm{Form: forms.ReadForm(values), kind: kind, typed: map[string]string{}}
	for _, f := range fields {
		if f.read != nil {
			form.typed[f.ID] = values.Get(f.ID)
		}
	}
	for _, texts := range []map[string]*string{form.texts(), form.budget.texts()} {
		for name, field := range texts {
			*field = values.Get(name)
		}
	}
	forms.ReadChecks(values, form.checks())
	form.shown = values.Get("shown")
	form.team, form.typed["namespace"] = strings.TrimSpace(form.team), strings.TrimSpace(form.typed["namespace"])
	form.rows = forms.ReadRows[formRow](values, "row-", maxPostedRows)
	form.limits = forms.ReadRows[formRow](values, "limit-", maxPostedRows)
	form.members = forms.ReadRows[formMember](values, "member-", maxPostedMembers)
	form.shares = forms.ReadRows[formShare](values, "share-", maxPostedShares)
	form.windows = forms.ReadRows[formWindow](values, "window-", maxPostedWindows)
	form.pools = forms.ReadRows[formPool](values, "new-pool-", maxPostedRows)
	return form
}

// values returns the values that readForm reads.
func (f *allocationForm) values() url.Values {
	values := url.Values{}
	f.Write(values)
	for _, field := range fields {
		if typed := f.typed[field.ID]; field.read != nil && f.kind.has(field) && (typed != "" || !field.option()) {
			values.Set(field.ID, typed)
		}
	}
	forms.WriteTexts(values, f.texts())
	forms.WriteTexts(values, f.budget.texts())
	forms.WriteChecks(values, f.checks())
	last := len(f.rows) // rows of pools behind it are offered again
	for last > 0 && f.rows[last-1].onlyOffered() {
		last--
	}
	forms.WriteRows(values, "row-", f.rows[:last])
	forms.WriteRows(values, "limit-", f.limits)
	forms.WriteRows(values, "member-", f.members)
	forms.WriteRows(values, "share-", f.shares)
	forms.WriteRows(values, "window-", f.windows)
	forms.WriteRows(values, "new-pool-", f.pools)
	return values
}

// do applies an action that only changes the form.
func (f *allocationForm) do(action string, types catalog.Catalog) {
	name, argument, _ := strings.Cut(action, ":")
	f.verify = action == forms.ActionVerify
	f.more = strings.HasSuffix(name, "-limit") || strings.HasSuffix(name, "-share") || strings.HasSuffix(name, "-window") || name == "import-batch"
	switch name {
	case "add-row":
		f.rows = forms.Add(f.rows, formRow{}, maxPostedRows)
	case "add-limit":
		f.limits = forms.Add(f.limits, formRow{}, v1alpha1.MaxQuotaRows)
	case "add-member":
		f.members = forms.Add(f.members, formMember{kind: "Group"}, f.kind.mostMembers())
	case "add-share":
		f.shares = forms.Add(f.shares, formShare{}, v1alpha1.MaxShares)
	case "remove-share":
		f.shares = forms.Remove(f.shares, argument)
	case "add-window":
		f.windows = forms.Add(f.windows, formWindow{}, v1alpha1.MaxWindows)
	case "remove-window":
		f.windows = forms.Remove(f.windows, argument)
	case "import-batch":
		f.importBatch()
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
			f.createPool(row, types)
			f.rows = slices.DeleteFunc(f.rows, formRow.onlyOffered) // its nodes were in one of these
		}
	}
	f.dropPools()
	f.offer(types)
}

// row returns a row by its id, such as row-0 or limit-1; nil if there is none.
func (f *allocationForm) row(id string) *formRow {
	list, number, _ := strings.Cut(id, "-")
	i, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	return f.rowAt(map[string]string{"row": quotaPath, "limit": limitsPath}[list], i)
}

// rowAt returns a row of quota or a borrow limit by the path of its list; nil if
// there is none.
func (f *allocationForm) rowAt(list string, i int) *formRow {
	rows := map[string][]formRow{quotaPath: f.rows, limitsPath: f.limits}[list]
	if i < 0 || i >= len(rows) {
		return nil
	}
	return &rows[i]
}

// edited is the current allocation that a form changes.
type edited struct{ allocation v1alpha1.ComputeAllocation }

func edit(allocation v1alpha1.ComputeAllocation) *edited { return &edited{allocation} }

// exactText matches a quantity of memory as formRowOf writes it.
var exactText = regexp.MustCompile(`^[0-9]{1,16}([KMGTP]i|[kMGTP])?$`)

// withUnit reports whether an amount of bytes has its unit, such as 100G.
func withUnit(text string) bool {
	return exactText.MatchString(text) && strings.ContainsAny(text, "kKMGTP")
}

// exactMemory returns the saved memory of a row whose input is unchanged: the input
// has GiB in three decimals.
func (r formRow) exactMemory() (resource.Quantity, bool) {
	if r.memory == "" || !exactText.MatchString(r.exact) {
		return resource.Quantity{}, false
	}
	exact, err := resource.ParseQuantity(r.exact)
	return exact, err == nil && quota.Number(catalog.Memory, resources.AmountFromQuantity(catalog.Memory, exact)) == r.memory
}

// emptyForm returns the form of a new allocation.
func emptyForm() allocationForm {
	form := allocationForm{
		request: rand.Text(), typed: typedOf(&v1alpha1.ComputeAllocationSpec{}), members: []formMember{{kind: "Group"}},
		strategy: string(v1alpha1.LendAndBorrow), percent: "50",
	}
	form.typed["activation"] = "" // unset
	return form
}

// formOf returns the form of a.
func formOf(a v1alpha1.ComputeAllocation) allocationForm {
	spec := &a.Spec
	form := allocationForm{
		Form:    forms.Form{Version: a.ResourceVersion, Generation: strconv.FormatInt(a.Generation, 10)},
		request: rand.Text(), edits: edit(a),
		team: a.Name, typed: typedOf(spec), strategy: string(spec.Sharing.Strategy), unlimited: spec.Sharing.Unlimited,
	}
	forms.OrDefault(&form.strategy, string(v1alpha1.LendAndBorrow))
	if p := spec.Sharing.BorrowLimitPercent; p != nil {
		form.percent = strconv.Itoa(int(*p))
	}
	for _, m := range spec.Members {
		form.members = append(form.members, formMember{kind: m.Kind, name: m.Name})
	}
	form.shares = sharesOf(spec.Shares)
	form.windows, form.budget = windowsOf(spec.Windows), budgetOf(spec.Budget)
	for _, row := range spec.Quota {
		form.rows = append(form.rows, formRowOf(row))
	}
	for _, row := range spec.Sharing.BorrowLimits {
		form.limits = append(form.limits, formRowOf(row))
	}
	return form
}

func formRowOf(row v1alpha1.QuotaRow) formRow {
	r := formRow{instanceType: row.InstanceType + row.Pool}
	whole := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	r.instances, r.accelerators = whole(row.Instances), whole(row.Accelerators)
	if row.VCPU != nil {
		r.vcpu = quota.Number(catalog.CPU, resources.AmountFromQuantity(catalog.CPU, *row.VCPU))
	}
	if row.Memory != nil {
		r.memory = quota.Number(catalog.Memory, resources.AmountFromQuantity(catalog.Memory, *row.Memory))
		if read, _ := forms.ParseGiB(r.memory); read == nil || read.String() != row.Memory.String() {
			r.exact = row.Memory.String()
		}
	}
	if p := row.Partition; p != nil {
		r.profile, r.count = p.Profile, strconv.FormatInt(p.Count, 10)
	}
	for _, other := range row.Resources {
		amount := quota.Number(other.Name, resources.AmountFromQuantity(other.Name, other.Quantity))
		if read, _ := forms.ParseGiB(amount); resources.InBytes(other.Name) && withUnit(other.Quantity.String()) && (read == nil || read.Cmp(other.Quantity) != 0) {
			amount = other.Quantity.String() // which three decimals of GiB do not have
		}
		r.setOther(other.Name, amount)
	}
	return r
}
