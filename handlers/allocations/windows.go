package allocations

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const windowsPath = "spec.windows"

// unlimited is typed for a borrow limit without a percentage.
const unlimited = "unlimited"

// formWindow is a window as typed. quota has a row a line.
type formWindow struct {
	name, days, from, to, zone, quota, sharing, percent, activation, notice string
}

func (w *formWindow) Fields() map[string]*string {
	return map[string]*string{
		"name": &w.name, "days": &w.days, "from": &w.from, "to": &w.to, "zone": &w.zone, "quota": &w.quota,
		"sharing": &w.sharing, "percent": &w.percent, "activation": &w.activation, "notice": &w.notice,
	}
}

func (w formWindow) empty() bool { return w == formWindow{} }

// complete reports whether the row has a name, times, and something to replace.
func (w formWindow) complete() bool {
	return w.name != "" && w.from != "" && w.to != "" && (w.quota != "" || w.sharing != "" || w.activation != "")
}

// formBudget is a budget as typed. percents are those of the actions, in their order.
type formBudget struct {
	amount, unit, period, zone string
	percents                   [4]string
}

// moneyUnit is the unit of a budget of money; the other is accelerator hours.
const moneyUnit = "money"

// texts returns the inputs of the budget by name.
func (b *formBudget) texts() map[string]*string {
	texts := map[string]*string{"budget-amount": &b.amount, "budget-unit": &b.unit, "budget-period": &b.period, "budget-zone": &b.zone}
	for i, action := range v1alpha1.BudgetActions {
		texts[budgetInput(action)] = &b.percents[i]
	}
	return texts
}

func budgetInput(action v1alpha1.BudgetAction) string {
	return "budget-" + strings.ToLower(string(action))
}

// windowsOf returns the rows of saved windows.
func windowsOf(windows []v1alpha1.Window) (rows []formWindow) {
	for i := range windows {
		w := &windows[i]
		row := formWindow{name: w.Name, days: describe.Days(w.Days), from: strings.Replace(w.From, "T", " ", 1), to: strings.Replace(w.To, "T", " ", 1), zone: w.TimeZone, activation: string(w.Activation), notice: describe.Duration(w.Notice)}
		row.quota = quotaLines(w.Quota)
		if s := w.Sharing; s != nil {
			row.sharing = cmp.Or(string(s.Strategy), string(v1alpha1.LendAndBorrow))
			if s.Unlimited {
				row.percent = unlimited
			} else if s.BorrowLimitPercent != nil {
				row.percent = strconv.Itoa(int(*s.BorrowLimitPercent))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// quotaLines returns quota as parseWindowQuota reads it.
func quotaLines(quota []v1alpha1.WindowQuota) string {
	var lines []string
	for _, q := range quota {
		line := q.InstanceType + q.Pool
		switch {
		case q.Instances != nil:
			line += fmt.Sprintf(" %d instances", *q.Instances)
		case q.Partition != nil:
			line += fmt.Sprintf(" %d %s", q.Partition.Count, q.Partition.Profile)
		case q.Accelerators != nil:
			line += fmt.Sprintf(" %d", *q.Accelerators)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func budgetOf(b *v1alpha1.Budget) (form formBudget) {
	form.period = string(v1alpha1.BudgetMonth)
	if b == nil {
		return form
	}
	form.period, form.zone, form.amount = string(b.Period), b.TimeZone, b.Money
	if b.AcceleratorHours != nil {
		form.amount = strconv.FormatInt(*b.AcceleratorHours, 10)
	} else {
		form.unit = moneyUnit
	}
	for i, action := range v1alpha1.BudgetActions {
		for _, step := range b.Steps {
			if step.Action == action {
				form.percents[i] = strconv.Itoa(int(step.Percent))
			}
		}
	}
	return form
}

// parseWindows parses the rows that are not empty.
func (f *allocationForm) parseWindows(types catalog.Catalog, wrong *governance.FieldErrors) (windows []v1alpha1.Window) {
	for i, row := range f.windows {
		if row.empty() {
			continue
		}
		at := fmt.Sprintf("%s[%d].", windowsPath, i)
		w := v1alpha1.Window{Name: row.name, TimeZone: strings.TrimSpace(row.zone), Activation: v1alpha1.Activation(row.activation)}
		if row.name == "" && f.Submitted {
			wrong.Add(at+"name", "give the window a name")
		}
		var problem string
		w.Days, problem = parseDays(row.days)
		wrong.Add(at+"days", problem)
		w.From, w.To = strings.Replace(strings.TrimSpace(row.from), " ", "T", 1), strings.Replace(strings.TrimSpace(row.to), " ", "T", 1)
		if row.notice != "" {
			notice, err := forms.ReadDuration(strings.TrimSpace(row.notice))
			if err != nil || notice < 0 || notice > v1alpha1.MaxNotice {
				wrong.Add(at+"notice", "use a time up to 720h, such as 24h or 30m")
			} else {
				w.Notice = &metav1.Duration{Duration: notice}
			}
		}
		w.Quota, problem = f.parseWindowQuota(row.quota, types)
		wrong.Add(at+"quota", problem)
		w.Sharing, problem = parseWindowSharing(row)
		wrong.Add(at+"sharing", problem)
		if f.Submitted && row.quota == "" && row.sharing == "" && row.activation == "" {
			wrong.Add(at+"quota", "set quota, lending and borrowing, or the queue")
		}
		windows = append(windows, w)
	}
	return windows
}

// parseDays parses days such as "Mon–Fri, Sun" or "Monday Wednesday"; none for a window that
// is once.
func parseDays(text string) (days []v1alpha1.Weekday, problem string) {
	week := slices.Concat(v1alpha1.Weekdays[1:], v1alpha1.Weekdays[:1]) // from Monday
	find := func(name string) int {
		return slices.IndexFunc(week, func(d v1alpha1.Weekday) bool {
			return len(name) >= 2 && len(name) <= len(d) && strings.EqualFold(string(d[:len(name)]), name)
		})
	}
	on := [7]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
		first, last, isRange := strings.Cut(strings.ReplaceAll(word, "–", "-"), "-")
		from := find(first)
		to := from
		if isRange {
			to = find(last)
		}
		if from < 0 || to < 0 {
			return nil, "use days such as Mon–Fri or Mon, Wed; leave it empty for a window that is once"
		}
		for i := from; ; i = (i + 1) % 7 {
			on[i] = true
			if i == to {
				break
			}
		}
	}
	for i, day := range week {
		if on[i] {
			days = append(days, day)
		}
	}
	return days, ""
}

// parseWindowQuota parses the quota of a window or of a share, a row a line: the instance type or pool, and
// a number of accelerators, of instances or of parts.
func (f *allocationForm) parseWindowQuota(text string, types catalog.Catalog) (rows []v1alpha1.WindowQuota, problem string) {
	const example = "write an instance type or pool and a number, such as ml.p5.48xlarge 16, ml.p5.48xlarge 2 instances or h100 8 mig-1g.10gb"
	problem = forms.ParseLines(text, func(fields []string) string {
		if len(fields) < 2 || len(fields) > 3 {
			return example
		}
		row := v1alpha1.WindowQuota{InstanceType: fields[0]}
		if f.isPool(fields[0], types) {
			row = v1alpha1.WindowQuota{Pool: fields[0]}
		}
		n, problem := forms.ParseWhole(fields[1], 0, v1alpha1.MaxAmount)
		unit := append(fields, "")[2]
		switch {
		case problem != "":
			return problem
		case n == 0:
			return "the number is at least 1; to admit nothing, set the queue on hold"
		case unit == "" || strings.HasPrefix(unit, "accelerator"):
			row.Accelerators = &n
		case strings.HasPrefix(unit, "instance"):
			row.Instances = &n
		case strings.HasPrefix(unit, "mig-"):
			row.Partition = &v1alpha1.Partition{Profile: unit, Count: n}
		default:
			return example
		}
		rows = append(rows, row)
		return ""
	})
	if problem == "" && len(rows) > v1alpha1.MaxQuotaRows {
		problem = fmt.Sprintf("has %d lines; at most %d fit", len(rows), v1alpha1.MaxQuotaRows)
	}
	return rows, problem
}

func parseWindowSharing(row formWindow) (*v1alpha1.WindowSharing, string) {
	s := &v1alpha1.WindowSharing{Strategy: v1alpha1.SharingStrategy(row.sharing)}
	switch s.Strategy {
	case "":
		if row.percent != "" {
			return nil, "choose lend and borrow, or remove the borrow limit"
		}
		return nil, ""
	case v1alpha1.LendAndBorrow:
	case v1alpha1.Lend, v1alpha1.DontLend:
		if row.percent != "" {
			return nil, "only lend and borrow has a borrow limit; remove it"
		}
		return s, ""
	default:
		return nil, "choose one of lend and borrow, lend, and do not lend"
	}
	switch row.percent {
	case "":
	case unlimited:
		s.Unlimited = true
	default:
		percent, problem := forms.ParseWhole(row.percent, 0, v1alpha1.MaxBorrowLimitPercent)
		if problem != "" {
			return nil, "the borrow limit is a percentage or " + unlimited
		}
		p := int32(percent)
		s.BorrowLimitPercent = &p
	}
	return s, ""
}

// parse parses the budget; nil without an amount.
func (b *formBudget) parse(submitted bool, wrong *governance.FieldErrors) *v1alpha1.Budget {
	set := slices.ContainsFunc(b.percents[:], func(p string) bool { return p != "" })
	if b.amount == "" {
		if set && submitted {
			wrong.Add("spec.budget.amount", "give the amount, or remove the percentages")
		}
		return nil
	}
	budget := &v1alpha1.Budget{Period: v1alpha1.BudgetPeriod(cmp.Or(b.period, string(v1alpha1.BudgetMonth))), TimeZone: strings.TrimSpace(b.zone)}
	if b.unit == moneyUnit {
		budget.Money = b.amount
		if !v1alpha1.ValidMoney(b.amount) {
			wrong.Add("spec.budget.amount", "use an amount above 0 such as 12500 or 99.50")
		}
	} else {
		hours, problem := forms.ParseWhole(b.amount, 1, v1alpha1.MaxAcceleratorHours)
		wrong.Add("spec.budget.amount", problem)
		budget.AcceleratorHours = &hours
	}
	if !slices.Contains(v1alpha1.BudgetPeriods, budget.Period) {
		wrong.Add("spec.budget.period", "choose week, month or quarter")
	}
	for i, action := range v1alpha1.BudgetActions {
		if b.percents[i] == "" {
			continue
		}
		percent, problem := forms.ParseWhole(b.percents[i], 1, v1alpha1.MaxBudgetPercent)
		wrong.Add("spec.budget."+string(action), problem)
		budget.Steps = append(budget.Steps, v1alpha1.BudgetStep{Percent: int32(percent), Action: action})
	}
	if !set && submitted {
		wrong.Add("spec.budget.steps", "set at least one percentage at which something happens")
	}
	return budget
}

// windowErrors returns the errors of windows and the budget that parsing does not find, with
// paths by the rows of the form.
func (f *allocationForm) windowErrors(spec *v1alpha1.ComputeAllocationSpec, types catalog.Catalog) []governance.FieldError {
	return f.formPaths(append(effective.Problems(spec, time.Now()), quota.CheckWindows(spec, types)...))
}

// windowRows returns the windows of the page.
func (f *allocationForm) windowRows(errs map[string]string) (rows []allocationviews.WindowRow) {
	for i, w := range f.windows {
		id := "window-" + strconv.Itoa(i)
		text := func(part, value string) views.TextField {
			return views.TextField{Value: value, Error: errs[id+"-"+part]}
		}
		rows = append(rows, allocationviews.WindowRow{
			Name: text("name", w.name), Days: text("days", w.days), From: text("from", w.from), To: text("to", w.to), Zone: text("zone", w.zone), Quota: text("quota", w.quota),
			Sharing: choice(errs[id+"-sharing"], w.sharing, "", "Unchanged", string(v1alpha1.LendAndBorrow), "Lend and borrow", string(v1alpha1.Lend), "Lend", string(v1alpha1.DontLend), "Do not lend"),
			Percent: text("percent", w.percent), Notice: text("notice", w.notice),
			Activation: choice(errs[id+"-activation"], w.activation, "", "Unchanged", string(v1alpha1.Active), "Active", string(v1alpha1.Hold), "Hold", string(v1alpha1.Drain), "Drain"),
			Error:      errs[id],
		})
	}
	return rows
}

// budgetView returns the budget of the page.
func (f *allocationForm) budgetView(errs map[string]string, money string) allocationviews.BudgetFields {
	b := &f.budget
	text := func(id, value string) views.TextField { return views.TextField{Value: value, Error: errs[id]} }
	view := allocationviews.BudgetFields{
		Amount: text("budget-amount", b.amount), Zone: text("budget-zone", b.zone),
		Unit:   choice("", b.unit, "", "Accelerator hours", moneyUnit, "Money"+money),
		Period: choice(errs["budget-period"], b.period, string(v1alpha1.BudgetWeek), "Week", string(v1alpha1.BudgetMonth), "Month", string(v1alpha1.BudgetQuarter), "Quarter"),
	}
	for i, action := range v1alpha1.BudgetActions {
		view.Steps = append(view.Steps, allocationviews.BudgetStepField{
			ID: budgetInput(action), Percent: text(budgetInput(action), b.percents[i]),
			Label: map[v1alpha1.BudgetAction]string{v1alpha1.BudgetNotify: "Notify at, %", v1alpha1.BudgetBorrowNothing: "Stop borrowing at, %", v1alpha1.BudgetHold: "Hold at, %", v1alpha1.BudgetDrain: "Drain at, %"}[action],
		})
	}
	return view
}

// choice returns a list of values and labels with the selected one.
func choice(problem, selected string, pairs ...string) views.SelectField {
	field := views.SelectField{Error: problem}
	for i := 0; i < len(pairs); i += 2 {
		field.Options = append(field.Options, views.Option{Value: pairs[i], Label: pairs[i+1], Selected: pairs[i] == selected})
	}
	return field
}

// currencyOf returns the currency of prices, such as ", EUR"; empty without prices.
func currencyOf(policy *v1alpha1.ClusterPolicy) string {
	if policy == nil || policy.Spec.Prices == nil || policy.Spec.Prices.Currency == "" {
		return ""
	}
	return ", " + policy.Spec.Prices.Currency
}

// calendarLines returns the lines of the calendar of a review.
func calendarLines(calendar []allocations.CalendarLine) (lines []allocationviews.CalendarLine) {
	for _, c := range calendar {
		line := allocationviews.CalendarLine{At: c.At.UTC().Format(time.RFC3339), Over: quota.DescribeExcess(c.Over)}
		if own := cmp.Or(c.Begins, c.Ends); own != nil { // in the time zone that the window has
			if place, err := effective.Location(own.TimeZone); err == nil {
				line.Clock = c.At.In(place).Format("Mon 2 Jan 2006, 15:04") + " " + cmp.Or(own.TimeZone, "UTC")
			}
		}
		if c.Ends != nil {
			line.Texts = append(line.Texts, c.Ends.Name+" ends")
		}
		if c.Begins != nil {
			line.Texts = append(line.Texts, c.Begins.Name+" begins: "+describe.Replaces(c.Begins))
		}
		if len(line.Texts) == 0 {
			line.Texts = []string{"A window of another team"}
		}
		lines = append(lines, line)
	}
	return lines
}
