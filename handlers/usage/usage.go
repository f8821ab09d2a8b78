package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	usageviews "kuota.dev/kuota/views/usage"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
)

const (
	shownTeams   = 200 // rows of teams; the others are one row
	chartPeriods = 100 // of a chart, at most
)

// reader reads what one user sees.
type reader struct {
	*Pages
	query
	scope       access.Scope
	departments departments.State
	teams       []string // that the user sees and that exist
	asked       []string // that the filters select; nil for all
	prices      accounting.Prices
	mayEdit     bool // the policy, which has the prices
}

func (h *Pages) open(c echo.Context, scope access.Scope) (*reader, error) {
	ctx := c.Request().Context()
	of, err := h.Departments.State(ctx, console.UserOf(c))
	if err != nil {
		return nil, err
	}
	r := &reader{Pages: h, query: parse(c.QueryParams(), h.Now(), len(of.Departments) > 0), scope: scope, departments: of}
	list, err := h.Tasks.ListWithin(ctx, r.scope, index.Query{}, nil)
	if r.teams = list.Teams; err != nil {
		return nil, err
	}
	if r.team != "" {
		r.asked = []string{r.team}
	}
	if r.asked, err = h.TeamsOf(ctx, r.department, r.asked); err != nil {
		return nil, err
	}
	state, err := h.Policy.State(ctx, console.UserOf(c))
	if r.mayEdit = state.MayEdit; state.Policy != nil {
		r.prices = accounting.PricesOf(state.Policy.Spec.Prices)
	}
	return r, err
}

// usage answers GET /usage: who used which compute.
func (h *Pages) usage(c echo.Context, scope access.Scope) error {
	r, err := h.open(c, scope)
	if err != nil {
		return err
	}
	page := usageviews.UsagePage{
		Chrome: h.Chrome(c), Action: urls.Usage, From: r.from.Format(time.DateOnly), To: r.to.AddDate(0, 0, -1).Format(time.DateOnly), Zone: r.zone,
		Wrong: r.daysWrong, ZoneWrong: r.zoneWrong,
	}
	page.Title, page.Active = "Usage", "usage"
	if slices.Contains(r.teams, r.team) {
		page.OneTeam = r.team
	}
	if len(r.Values) > 0 {
		page.ClearURL = urls.Usage
	}
	if h.History == nil {
		page.Trouble = tasks.NoHistory
		return web.Render(c, http.StatusOK, usageviews.Usage(page))
	}
	if r.problem() != "" { // what was typed
		page.From, page.To = cmp.Or(r.Values.Get("from"), page.From), cmp.Or(r.Values.Get("to"), page.To)
		if page.Filters, err = h.OfferDepartments(c, r.filters(r.teams, nil, nil, r.resource), r.department); err != nil {
			return err
		}
		return web.Render(c, http.StatusUnprocessableEntity, usageviews.Usage(page))
	}
	if err := r.fill(c.Request().Context(), &page); err != nil {
		page.Trouble = tasks.HistoryUnavailable(err)
	}
	if page.Filters, err = h.OfferDepartments(c, page.Filters, r.department); err != nil {
		return err
	}
	return web.Render(c, http.StatusOK, usageviews.Usage(page))
}

// fill sets the report on a page.
func (r *reader) fill(ctx context.Context, page *usageviews.UsagePage) error {
	pools, resources, err := r.History.Recorded(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(resources, quota.Compare)
	if r.resource == "" {
		if r.resource, err = r.usualResource(ctx); err != nil {
			return err
		}
	}
	q := r.visible(r.scope, r.teams, r.asked)
	whole := q
	whole.Pools = r.rows != "" && q.Teams == nil // teams have no rows then
	var found []accounting.Report
	var taskRows usageviews.UsageTable
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		found, err = accounting.Reports(ctx, r.History, whole, []time.Time{r.from.AddDate(0, 0, -r.days()), r.from, r.to}, r.prices)
		return err
	})
	if r.rows != "" {
		group.Go(func() (err error) {
			taskRows, err = r.taskTable(ctx, q)
			return err
		})
	}
	group.Go(func() error { return r.chart(ctx, q, page) })
	if err := group.Wait(); err != nil {
		return err
	}
	report, t, before := found[1], r.table(found[1]), ""
	if earlier := found[0]; earlier.Unknown < earlier.To.Sub(earlier.From) {
		of := r.table(earlier)
		before = fmt.Sprintf("; %s in the %s before", percent(of.used.Amount(), of.sum.Amount()), format.Count(r.days(), "day"))
	}
	page.Whole = q.Teams == nil
	page.Links, page.Filters = r.links(r.Now()), r.filters(r.teams, pools, resources, r.resource)
	page.Note = fmt.Sprintf("%s, %s to %s, time zone %s", format.HourUnit(r.resource), page.From, page.To, r.zone)
	page.OnPaper = r.onPaper(page.Cluster.Name, report)
	page.Prices = r.pricesWords()
	if r.mayEdit && r.ReadOnlyReason() == "" {
		page.PricesURL = urls.EditPrices
	}
	page.CSVURL, page.JSONURL = r.URL(urls.UsageCSV), r.URL(urls.UsageJSON)
	page.Stats = t.stats(report, before, page.Whole)
	page.Rows, page.Pools = t.teamTable(), t.poolTable(page.Whole)
	if r.rows != "" {
		page.Rows = taskRows
	}
	return nil
}

// onPaper says what a printed report is about, which on the screen the filters do.
func (r *reader) onPaper(cluster string, report accounting.Report) string {
	of := []string{"Cluster " + cluster}
	if r.team != "" {
		of = append(of, "team "+r.team)
	}
	if r.pool != "" {
		of = append(of, "pool "+r.pool)
	}
	until := report.To
	if now := r.Now(); until.After(now) {
		until = now
	}
	return strings.Join(of, ", ") + ". Data until " + until.In(r.from.Location()).Format("2 Jan 2006, 15:04 MST") + "."
}

// pricesWords describes the prices of the resource; empty for a reader who cannot set them
// while there are none.
func (r *reader) pricesWords() string {
	n := 0
	for _, price := range r.prices.List {
		if price.Resource == r.resource && (r.pool == "" || r.pool == price.Pool) {
			n++
		}
	}
	switch {
	case n > 0:
		return fmt.Sprintf("Costs are in %s, by %s of the cluster policy, each from its day on.", r.prices.Currency, format.Count(n, "price"))
	case r.mayEdit:
		return "There are no prices of " + format.ResourceName(r.resource) + ": this report has no costs."
	}
	return ""
}

// usualResource returns the accelerator that the nodes had most of, else vCPUs.
func (r *reader) usualResource(ctx context.Context) (string, error) {
	found, err := accounting.Reports(ctx, r.History, accounting.Query{Pools: true, Pool: r.pool}, []time.Time{r.from, r.to}, accounting.Prices{})
	if err != nil {
		return "", err
	}
	sums := map[string]*big.Int{}
	usual, most := catalog.CPU, new(big.Int)
	for _, l := range found[0].Lines {
		if sums[l.Resource] == nil {
			sums[l.Resource] = new(big.Int)
		}
		if sum := sums[l.Resource].Add(sums[l.Resource], l.Amount()); catalog.IsAccelerator(l.Resource) && (l.Resource == usual || sum.Cmp(most) > 0) {
			usual, most = l.Resource, sum
		}
	}
	return usual, nil
}

// resourceFilter returns the filter of the resource of a report, which may be the usual one.
func (q query) resourceFilter(resources []string, usual string) views.Filter {
	filter := listing.NewFilter("resource", "Resource", "", usual)
	for _, name := range resources {
		filter.Add(name, format.ResourceName(name))
	}
	if q.Values.Get("resource") == "" && !slices.Contains(resources, usual) {
		filter.Add(usual, format.ResourceName(usual))
	}
	return filter.Done()
}

// tabled sums up the lines of a report for its tables.
type tabled struct {
	*reader
	unit  int64
	used  accounting.Line // of all teams
	sum   accounting.Line
	idle  big.Int
	teams map[string]*accounting.Line // and others, by their kind after a space
	pools map[string]*poolSums
}

type poolSums struct{ used, outside, unhealthy, idle, sum accounting.Line }

// table sums up a report.
func (r *reader) table(report accounting.Report) *tabled {
	t := &tabled{reader: r, unit: accounting.Unit(r.resource), teams: map[string]*accounting.Line{}, pools: map[string]*poolSums{}}
	for _, l := range report.Lines {
		t.add(l)
	}
	return t
}

func (t *tabled) add(l *accounting.Line) {
	name := l.Team
	if l.Kind != accounting.Team {
		name = " " + string(l.Kind)
	}
	if t.teams[name] == nil {
		t.teams[name] = &accounting.Line{Kind: l.Kind, Team: l.Team}
	}
	t.teams[name].Add(l)
	t.sum.Add(l)
	p := t.pools[l.Pool]
	if p == nil {
		p = &poolSums{}
		t.pools[l.Pool] = p
	}
	p.sum.Add(l)
	switch l.Kind {
	case accounting.Outside:
		p.outside.Add(l)
	case accounting.Unhealthy:
		p.unhealthy.Add(l)
	case accounting.Idle:
		p.idle.Add(l)
		t.idle.Add(&t.idle, &l.Own)
	default:
		p.used.Add(l)
		t.used.Add(l)
	}
}

func (t *tabled) hours(amount *big.Int) string { return format.Hours(amount, t.unit) }

// stats are the sums of a report; before says what was used of the capacity before it.
func (t *tabled) stats(report accounting.Report, before string, whole bool) []views.Stat {
	t.used.Kind = accounting.Team
	const unit = "hours"
	stats := []views.Stat{{ID: "usage-used", Label: "Used by teams", Value: t.hours(t.used.Amount()), Unit: unit, Note: t.hours(&t.used.Borrowed) + " borrowed"}}
	if whole {
		stats = append([]views.Stat{{ID: "usage-capacity", Label: "Capacity", Value: t.hours(t.sum.Amount()), Unit: unit}}, stats...)
		stats[1].Note = percent(t.used.Amount(), t.sum.Amount()) + " of the capacity" + before
		stats = append(stats, views.Stat{ID: "usage-idle", Label: "Idle", Value: t.hours(&t.idle), Unit: unit, Note: percent(&t.idle, t.sum.Amount()) + " of the capacity"})
	}
	stats = append(stats, views.Stat{ID: "usage-recovered", Label: "Recovered from idle", Value: t.hours(t.used.Recovered()), Unit: unit, Note: "borrowed, and own growth"})
	if t.sum.Cost != nil {
		stats = append(stats, views.Stat{ID: "usage-cost", Label: "Cost", Value: format.Money(t.sum.Cost), Unit: t.prices.Currency})
	}
	unknown := views.Stat{ID: "usage-unknown", Label: "Without data", Value: format.Hours(big.NewInt(report.Unknown.Milliseconds()), 1), Unit: "hours", Note: "of " + format.Hours(big.NewInt(report.To.Sub(report.From).Milliseconds()), 1)}
	return append(stats, unknown)
}

func percent(part, whole *big.Int) string {
	if whole.Sign() <= 0 {
		return "–"
	}
	hundredths := new(big.Rat).SetFrac(new(big.Int).Mul(part, big.NewInt(100)), whole)
	return hundredths.FloatString(1) + " %"
}

// rowNames name what is not a team.
var rowNames = map[accounting.Kind]string{
	accounting.NoTeam: "Queues without a team", accounting.Outside: "Outside Kueue", accounting.Unhealthy: "Unhealthy", accounting.Idle: "Idle",
}

func (t *tabled) teamTable() usageviews.UsageTable {
	table := usageviews.UsageTable{First: "Team", Heads: []string{"Own", "Borrowed", "Hours", "Growth", "Lent"}}
	priced := t.sum.Cost != nil
	if priced {
		table.Heads = append(table.Heads, "Cost, "+t.prices.Currency)
	}
	row := func(id, name string, l *accounting.Line) usageviews.UsageRow {
		r := usageviews.UsageRow{ID: id, Name: name, Figures: []string{t.hours(&l.Own), t.hours(&l.Borrowed), t.hours(l.Amount()), t.hours(&l.Growth), t.hours(&l.Lent)}}
		if l.Kind != "" && !l.Kind.Used() {
			r.Figures = []string{"–", "–", t.hours(l.Amount()), "–", "–"}
		}
		if priced {
			r.Figures = append(r.Figures, format.Money(l.Cost))
		}
		return r
	}
	var lines []*accounting.Line
	for _, l := range t.teams {
		if l.Kind == accounting.Team {
			lines = append(lines, l)
		}
	}
	if t.byDepartment {
		table.First, lines = "Department", t.departmentLines(lines)
	}
	slices.SortFunc(lines, func(a, b *accounting.Line) int {
		return cmp.Or(b.Amount().Cmp(a.Amount()), cmp.Compare(a.Team, b.Team))
	})
	others := &accounting.Line{Kind: accounting.Team}
	for i, l := range lines {
		if i >= shownTeams {
			others.Add(l)
			continue
		}
		r := row("usage-team-"+l.Team, l.Team, l)
		switch {
		case t.byDepartment:
			r.ID = "usage-department-" + l.Team
			r.Name, r.URL = t.departmentName(l.Team)
		case slices.Contains(t.reader.teams, l.Team):
			r.URL = urls.Team(l.Team)
		default:
			r.Sub = "deleted"
		}
		table.Rows = append(table.Rows, r)
	}
	if more := len(lines) - shownTeams; more > 0 {
		table.Rows = append(table.Rows, row("usage-others", format.Count(more, "other "+strings.ToLower(table.First)), others))
	}
	for _, kind := range []accounting.Kind{accounting.NoTeam, accounting.Outside, accounting.Unhealthy, accounting.Idle} {
		if l := t.teams[" "+string(kind)]; l != nil {
			table.Rows = append(table.Rows, row("usage-"+string(kind[:2]), rowNames[kind], l))
		}
	}
	sum := t.sum
	table.Sum = row("usage-sum", "All", &sum)
	table.Sum.Figures[0], table.Sum.Figures[1] = t.hours(&t.used.Own), t.hours(&t.used.Borrowed)
	return table
}

// departmentLines sums up the lines of teams by the departments that they are in now: those
// directly below the one that the filter selects, or the highest ones. The name of a line is that
// of its department, and empty for teams that are in none of these.
func (t *tabled) departmentLines(teams []*accounting.Line) (lines []*accounting.Line) {
	sums := map[string]*accounting.Line{}
	for _, l := range teams {
		name := ""
		for _, above := range t.departments.Tree.Chain(t.departments.DepartmentOf(l.Team)) {
			if above == t.department {
				break
			}
			name = above
		}
		if sums[name] == nil {
			sums[name] = &accounting.Line{Kind: accounting.Team, Team: name}
			lines = append(lines, sums[name])
		}
		sums[name].Add(l)
	}
	return lines
}

// departmentName returns the words for a row of departmentLines, and the address of what is below
// that department.
func (t *tabled) departmentName(name string) (words, address string) {
	switch d := t.departments.Find(name); {
	case d != nil:
		return quota.Title(d), t.With("department", name)
	case t.department != "":
		return "Teams directly in it", t.With("rows", "")
	}
	return "Teams without a department", ""
}

func (t *tabled) poolTable(whole bool) usageviews.UsageTable {
	table := usageviews.UsageTable{First: "Pool", Heads: []string{"Own", "Borrowed"}}
	if whole {
		table.Heads = append(table.Heads, "Outside Kueue", "Unhealthy", "Idle")
	}
	table.Heads = append(table.Heads, "Hours")
	priced := t.sum.Cost != nil
	if priced {
		table.Heads = append(table.Heads, "Cost, "+t.prices.Currency)
	}
	row := func(id, name string, p *poolSums) usageviews.UsageRow {
		r := usageviews.UsageRow{ID: id, Name: name, Figures: []string{t.hours(&p.used.Own), t.hours(&p.used.Borrowed)}}
		if whole {
			r.Figures = append(r.Figures, t.hours(&p.outside.Own), t.hours(&p.unhealthy.Own), t.hours(&p.idle.Own))
		}
		if r.Figures = append(r.Figures, t.hours(p.sum.Amount())); priced {
			r.Figures = append(r.Figures, format.Money(p.sum.Cost))
		}
		return r
	}
	var all poolSums
	for _, name := range slices.Sorted(maps.Keys(t.pools)) {
		p := t.pools[name]
		table.Rows = append(table.Rows, row("usage-pool-"+name, name, p))
		for _, sum := range [][2]*accounting.Line{{&all.used, &p.used}, {&all.outside, &p.outside}, {&all.unhealthy, &p.unhealthy}, {&all.idle, &p.idle}, {&all.sum, &p.sum}} {
			sum[0].Add(sum[1])
		}
	}
	table.Sum = row("usage-pool-sum", "All", &all)
	return table
}

// chart sets the chart of the periods.
func (r *reader) chart(ctx context.Context, q accounting.Query, page *usageviews.UsagePage) error {
	bounds := r.bounds()
	if len(bounds)-1 > chartPeriods {
		page.ChartNote = fmt.Sprintf("A chart has at most %d periods. Choose weeks or months.", chartPeriods)
		return nil
	}
	if len(bounds) < 3 {
		return nil
	}
	q.Pools = q.Teams == nil
	reports, err := accounting.Reports(ctx, r.History, q, bounds, accounting.Prices{})
	if err != nil {
		return err
	}
	c := views.Chart{ID: "usage-chart", Title: map[accounting.Granularity]string{accounting.Day: "Hours by day", accounting.Week: "Hours by week", accounting.Month: "Hours by month"}[r.by], Alone: true, Unit: format.HourUnit(r.resource), Stacked: true, Days: true}
	series := []struct {
		label, tone string
		of          func(*accounting.Line) *big.Int
	}{
		{"Own", "own", func(l *accounting.Line) *big.Int { return usedPart(l, &l.Own) }},
		{"Borrowed", "borrowed", func(l *accounting.Line) *big.Int { return usedPart(l, &l.Borrowed) }},
		{"Outside Kueue", "outside", func(l *accounting.Line) *big.Int { return kindPart(l, accounting.Outside) }},
		{"Unhealthy", "lost", func(l *accounting.Line) *big.Int { return kindPart(l, accounting.Unhealthy) }},
		{"Idle", "idle", func(l *accounting.Line) *big.Int { return kindPart(l, accounting.Idle) }},
	}
	if !q.Pools {
		series = series[:2]
	}
	for _, s := range series {
		values := make([]views.ChartValue, len(reports))
		for i, report := range reports {
			sum := new(big.Int)
			for _, l := range report.Lines {
				sum.Add(sum, s.of(l))
			}
			hours, _ := new(big.Rat).SetFrac(sum, big.NewInt(accounting.Unit(r.resource)*time.Hour.Milliseconds())).Float64()
			values[i] = views.ChartValue{Value: hours, Known: report.Unknown < report.To.Sub(report.From), Text: format.Hours(sum, accounting.Unit(r.resource))}
		}
		c.Series = append(c.Series, views.ChartSeries{Label: s.label, Tone: s.tone, Step: true, Values: values})
	}
	for _, at := range bounds[:len(bounds)-1] {
		year, month, day := at.Date() // a chart shows times in UTC, and these are days of the zone
		c.Times = append(c.Times, time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix())
	}
	page.Chart, page.Charts = &c, true
	return nil
}

func usedPart(l *accounting.Line, amount *big.Int) *big.Int {
	if !l.Kind.Used() {
		return new(big.Int)
	}
	return amount
}

func kindPart(l *accounting.Line, kind accounting.Kind) *big.Int {
	if l.Kind != kind {
		return new(big.Int)
	}
	return &l.Own
}

// unavailable returns the error of a file that cannot be read.
func unavailable(err error) error {
	return &governance.Error{Kind: governance.Unavailable, Op: "report usage", Message: tasks.HistoryUnavailable(err), Err: err}
}
