package truth_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

// kind is a kind of change that a page offers.
type kind string

const (
	fewerPods   kind = "pods"
	tasksEnd    kind = "end"
	higherClass kind = "class"
	borrowLimit kind = "limit"
	moreQuota   kind = "quota"
)

var kinds = []kind{fewerPods, tasksEnd, higherClass, borrowLimit, moreQuota}

// change is one change that a page offers, as far as the page shows it.
type change struct {
	kind    kind
	pods    int32           // fewerPods
	class   string          // higherClass
	pool    string          // borrowLimit, moreQuota
	amounts quota.Resources // borrowLimit, moreQuota: the new quota or limit
	tasks   []string        // tasksEnd
	tied    bool            // chance decides
	link    string          // to the form of the allocation, with the figures; empty for none

	preempts, starts named // tasks beside the one that the page is about
}

// named are tasks by name, sorted, and how many more there are without their names.
type named struct {
	names []string
	more  int
}

func (n named) String() string { return fmt.Sprintf("%s+%d", strings.Join(n.names, ","), n.more) }

// equals reports whether these are the tasks that are named, as far as they are.
func (n named) equals(got []string) bool {
	for _, name := range n.names {
		if !slices.Contains(got, name) {
			return false
		}
	}
	return len(got) == len(n.names)+n.more
}

func (c change) String() string {
	what := fmt.Sprintf("%s of %s in %s", c.kind, amountsText(c.amounts), c.pool)
	switch c.kind {
	case fewerPods:
		what = fmt.Sprintf("%d pods", c.pods)
	case tasksEnd:
		what = "end of " + strings.Join(c.tasks, ",")
	case higherClass:
		what = "class " + c.class
	}
	return what
}

// page is what the page of a task says of its start.
type page struct {
	headline string
	checked  string // what it says about the simulation
	differs  bool   // Kueue gives another reason
	failed   bool   // nothing could be verified
	changes  []change
}

// pageLimit bounds the wait for the changes to be verified.
const pageLimit = 2 * time.Minute

// readPage reads the page of a task from the console, again until its changes are
// verified.
func (l *lab) readPage(ctx context.Context, in *instance, k task) (page, error) {
	l.readers <- struct{}{}
	defer func() { <-l.readers }()
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	for {
		p, computing, err := l.load(ctx, in, k)
		if err != nil || !computing {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, fmt.Errorf("page of %s: %w", k.name, ctx.Err())
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (l *lab) load(ctx context.Context, in *instance, k task) (p page, computing bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/tasks/%s/job/%s", l.console, in.namespace(k.team), k.name), nil)
	if err != nil {
		return page{}, false, err
	}
	request.Header.Set("Accept", "text/html")
	response, err := l.browser.Do(request)
	if err != nil {
		return page{}, false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return page{}, false, fmt.Errorf("page of %s: %s", k.name, response.Status)
	}
	document, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		return page{}, false, err
	}
	if document.Find("#checked").AttrOr("data-state", "") == "computing" {
		return page{}, true, nil
	}
	p, err = parsePage(document)
	return p, false, err
}

// parsePage returns what the page of a waiting task says. A text that it does not know
// is an error, so that no offer is left out.
func parsePage(document *goquery.Document) (p page, err error) {
	why := document.Find("#task-why")
	if why.Length() != 1 {
		return p, fmt.Errorf("the page does not say why the task waits")
	}
	p.headline = text(why.Find(".verdict strong"))
	p.checked, p.failed = text(document.Find("#checked")), document.Find("#checked").AttrOr("data-state", "") == "failed"
	p.differs = why.Find(".why-differs").Length() > 0
	document.Find("#task-changes .why-changes > li").EachWithBreak(func(_ int, item *goquery.Selection) bool {
		var c change
		if c, err = parseChange(item); err == nil {
			p.changes = append(p.changes, c)
		}
		return err == nil
	})
	return p, err
}

var (
	podsTitle  = regexp.MustCompile(`^Run it with (\d+) pods?$`)
	classTitle = regexp.MustCompile(`^Changing the class to (\S+)$`)
	raiseTitle = regexp.MustCompile(`^Raising the (quota|borrowing limit) to (.+)$`)
	raiseText  = regexp.MustCompile(`^of (\S+) for .* starts it\.$`)
	moreTasks  = regexp.MustCompile(`(\d+) more`)
)

func parseChange(item *goquery.Selection) (c change, err error) {
	item.Find("a").Each(func(_ int, link *goquery.Selection) {
		if text(link) == "Edit allocation" {
			c.link = link.AttrOr("href", "")
		}
	})
	if tied := item.Find(".tied"); tied.Length() > 0 {
		c.tied = true
		tied.Remove()
	}
	effects := item.Find("[data-effect]")
	effects.EachWithBreak(func(_ int, effect *goquery.Selection) bool {
		switch said := text(effect); {
		case strings.HasPrefix(said, "Kueue preempts "):
			c.preempts = parseTasks(effect)
		case strings.HasPrefix(said, "Also starts "):
			c.starts = parseTasks(effect)
		case strings.HasPrefix(said, "Then does not start "), strings.Contains(said, " then borrows "):
		default:
			err = fmt.Errorf("unknown effect %q", said)
		}
		return err == nil
	})
	effects.Remove()
	if err != nil {
		return c, err
	}
	title, whole := text(item.Find("b").First()), text(item.Find("div").First())
	rest := strings.TrimSpace(strings.TrimPrefix(whole, title))
	if found := podsTitle.FindStringSubmatch(title); found != nil && strings.HasSuffix(rest, "starts now.") {
		n, _ := strconv.Atoi(found[1])
		c.kind, c.pods = fewerPods, int32(n)
		return c, nil
	}
	if found := classTitle.FindStringSubmatch(title); found != nil && rest == "starts it." {
		c.kind, c.class = higherClass, found[1]+classSuffix
		return c, nil
	}
	if found, of := raiseTitle.FindStringSubmatch(title), raiseText.FindStringSubmatch(rest); found != nil && of != nil {
		c.kind, c.pool = moreQuota, of[1]
		if found[1] != "quota" {
			c.kind = borrowLimit
		}
		c.amounts, err = parseAmounts(found[2])
		return c, err
	}
	if ending := parseTasks(item); title == "The end of" && strings.HasSuffix(rest, "starts it.") && len(ending.names) > 0 {
		c.kind, c.tasks = tasksEnd, ending.names
		if ending.more > 0 {
			err = fmt.Errorf("the page does not name all tasks: %q", whole)
		}
		return c, err
	}
	return c, fmt.Errorf("unknown change %q", whole)
}

// parseTasks returns the tasks that a selection links to.
func parseTasks(s *goquery.Selection) (n named) {
	s.Find("a").Each(func(_ int, link *goquery.Selection) {
		if href := link.AttrOr("href", ""); strings.HasPrefix(href, "/tasks/") && strings.Contains(href, "/job/") && strings.Count(href, "/") == 4 {
			n.names = append(n.names, href[strings.LastIndex(href, "/")+1:])
		}
	})
	slices.Sort(n.names)
	if found := moreTasks.FindStringSubmatch(text(s)); found != nil {
		n.more, _ = strconv.Atoi(found[1])
	}
	return n
}

// parseAmounts parses figures such as "6 GPUs · 1,024.5 GiB".
func parseAmounts(figures string) (quota.Resources, error) {
	amounts := quota.Resources{}
	for figure := range strings.SplitSeq(figures, " · ") {
		number, unit, _ := strings.Cut(figure, " ")
		value, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
		if err != nil {
			return nil, fmt.Errorf("figure %q: %w", figure, err)
		}
		switch unit {
		case "GPU", "GPUs":
			amounts[catalog.GPU] = resources.Amount(value)
		case "vCPU":
			amounts[catalog.CPU] = resources.Amount(value*1000 + 0.5)
		case "GiB":
			amounts[catalog.Memory] = resources.Amount(value * float64(catalog.GiB))
		default:
			return nil, fmt.Errorf("figure %q has an unknown unit", figure)
		}
	}
	return amounts, nil
}

// text returns the text of a selection with single spaces.
func text(s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") }

func TestParsePage(t *testing.T) {
	const head = `<section id="task-why"><div class="verdict"><strong>2 GPUs short.</strong></div></section><section id="task-changes"><ul class="why-changes">`
	parse := func(items string) (page, error) {
		document, err := goquery.NewDocumentFromReader(strings.NewReader(head + items + `</ul></section>`))
		if err != nil {
			t.Fatal(err)
		}
		return parsePage(document)
	}
	got, err := parse(`
		<li><div><b>Run it with 1 pod</b> instead of 3: starts now.</div></li>
		<li><div><b>The end of</b> <a href="/tasks/n/job/t2">t2</a> 4 GPUs, <a href="/tasks/n/job/t1">t1</a> 1 GPU starts it.</div></li>
		<li><div><b>Changing the class to mid</b> starts it. <span class="tied">depends on a tie</span>
			<p data-effect="preempted">Kueue preempts <a href="/tasks/n/job/t4">t4</a> 4 GPUs, 3 more</p>
			<p data-effect="started">Also starts <a href="/tasks/n/job/t5">t5</a> 4 GPUs</p>
			<p data-effect="missed">Then does not start <a href="/tasks/n/job/t6">t6</a> 4 GPUs</p></div>
			<a href="/tasks/n/job/t7/class">Change priority class</a></li>
		<li><div><b>Raising the borrowing limit to 6 GPUs · 1,024.5 GiB</b> of truth.a for team a starts it.</div> <a href="/policies/allocations/a/edit?raise=x">Edit allocation</a></li>
		<li><div><b>Raising the quota to 0.5 vCPU</b> of truth.b for team a starts it. <p data-effect="borrowed">Team a then borrows 4 GPUs.</p></div></li>`)
	if err != nil {
		t.Fatal(err)
	}
	want := []change{
		{kind: fewerPods, pods: 1},
		{kind: tasksEnd, tasks: []string{"t1", "t2"}},
		{kind: higherClass, class: "mid-priority", tied: true, preempts: named{[]string{"t4"}, 3}, starts: named{[]string{"t5"}, 0}},
		{kind: borrowLimit, pool: "truth.a", amounts: quota.Resources{catalog.GPU: 6, catalog.Memory: 1024*catalog.GiB + catalog.GiB/2}, link: "/policies/allocations/a/edit?raise=x"},
		{kind: moreQuota, pool: "truth.b", amounts: quota.Resources{catalog.CPU: 500}},
	}
	if diff := cmp.Diff(want, got.changes, cmp.AllowUnexported(change{}, named{})); diff != "" || got.headline != "2 GPUs short." {
		t.Errorf("headline %q; changes (-want +got):\n%s", got.headline, diff)
	}
	for _, unknown := range []string{
		`<li><div><b>Waiting</b> helps</div></li>`,
		`<li><div><b>Run it with 1 pod</b> instead of 3: starts now. <p data-effect="pods">Its pods change</p></div></li>`,
	} {
		if _, err := parse(unknown); err == nil {
			t.Errorf("%s: got no error for a text that is not known", unknown)
		}
	}
}
