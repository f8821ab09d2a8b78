package allocations

import (
	"crypto/rand"
	"regexp"
	"strconv"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/forms"

	"k8s.io/apimachinery/pkg/api/resource"
)

// edited is the current allocation that a form changes.
type edited struct{ allocation v1alpha1.ComputeAllocation }

func edit(allocation v1alpha1.ComputeAllocation) *edited { return &edited{allocation} }

// exactText matches a quantity of memory as formRowOf writes it.
var exactText = regexp.MustCompile(`^[0-9]{1,16}([KMGTP]i|[kMGTP])?$`)

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
		request: rand.Text(), typed: typedOf(&v1alpha1.ComputeAllocationSpec{}), rows: []formRow{{}}, members: []formMember{{kind: "Group"}},
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
		form.members = append(form.members, formMember{m.Kind, m.Name})
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
	return r
}
