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

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"

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

// change is one change that a page offers, as far as a reader is told.
type change struct {
	kind    kind
	pods    int32           // fewerPods
	class   string          // higherClass
	pool    string          // borrowLimit, moreQuota
	amounts quota.Resources // borrowLimit, moreQuota: the new quota or limit
	// tasks are the names of the tasks that end, or that are preempted. others is how
	// many more there are, without their names.
	tasks  []string
	others int
}

func (c change) String() string {
	switch c.kind {
	case fewerPods:
		return fmt.Sprintf("%d pods", c.pods)
	case tasksEnd:
		return "end of " + strings.Join(c.tasks, ",")
	case higherClass:
		return fmt.Sprintf("class %s, preempting %s", c.class, strings.Join(c.tasks, ","))
	}
	return fmt.Sprintf("%s of %s in %s", c.kind, amountsText(c.amounts), c.pool)
}

// page is what the page of a task says of its start.
type page struct {
	headline string
	differs  bool // Kueue gives another reason
	changes  []change
}

// readPage reads the page of a task from the console.
func readPage(ctx context.Context, browser *http.Client, console string, in *instance, k task) (page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/tasks/%s/job/%s", console, in.namespace(k.team), k.name), nil)
	if err != nil {
		return page{}, err
	}
	request.Header.Set("Accept", "text/html")
	response, err := browser.Do(request)
	if err != nil {
		return page{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return page{}, fmt.Errorf("page of %s: %s", k.name, response.Status)
	}
	document, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		return page{}, err
	}
	return parsePage(document)
}

// parsePage returns what the page of a waiting task says. A text that it does not know
// is an error, so that no offer is left out.
func parsePage(document *goquery.Document) (p page, err error) {
	why := document.Find("#task-why")
	if why.Length() != 1 {
		return p, fmt.Errorf("the page does not say why the task waits")
	}
	p.headline = text(why.Find(".verdict strong"))
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
	raiseText  = regexp.MustCompile(`^of (\S+) for `)
	moreTasks  = regexp.MustCompile(`(\d+) more`)
)

func parseChange(item *goquery.Selection) (c change, err error) {
	title := text(item.Find("b").First())
	whole := text(item)
	item.Find("a").Each(func(_ int, link *goquery.Selection) {
		href := link.AttrOr("href", "")
		c.tasks = append(c.tasks, href[strings.LastIndex(href, "/")+1:])
	})
	slices.Sort(c.tasks)
	if found := moreTasks.FindStringSubmatch(whole); found != nil {
		c.others, _ = strconv.Atoi(found[1])
	}
	rest := strings.TrimSpace(strings.TrimPrefix(whole, title))
	if found := podsTitle.FindStringSubmatch(title); found != nil && strings.HasSuffix(rest, "starts now.") {
		n, _ := strconv.Atoi(found[1])
		c.kind, c.pods = fewerPods, int32(n)
		return c, nil
	}
	if found := classTitle.FindStringSubmatch(title); found != nil && strings.HasPrefix(rest, "preempts") {
		c.kind, c.class = higherClass, found[1]
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
	if title == "" && regexp.MustCompile(`finish(es)?$`).MatchString(whole) && len(c.tasks) > 0 {
		c.kind = tasksEnd
		return c, nil
	}
	return c, fmt.Errorf("unknown change %q", whole)
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
			amounts[catalog.GPU] = int64(value)
		case "vCPU":
			amounts[catalog.CPU] = int64(value*1000 + 0.5)
		case "GiB":
			amounts[catalog.Memory] = int64(value * float64(catalog.GiB))
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
		<li><b>Run it with 1 pod</b> instead of 3: starts now.</li>
		<li><b></b> <a href="/tasks/n/job/t2">t2</a> 4 GPUs, <a href="/tasks/n/job/t1">t1</a> 1 GPU, 3 more finish</li>
		<li><b>Changing the class to truth-mid</b> preempts <a href="/tasks/n/job/t4">t4</a> 4 GPUs</li>
		<li><b>Raising the borrowing limit to 6 GPUs · 1,024.5 GiB</b> of truth.a for team a starts it now, and preempts nothing.</li>
		<li><b>Raising the quota to 0.5 vCPU</b> of truth.b for team a.</li>`)
	if err != nil {
		t.Fatal(err)
	}
	want := []change{
		{kind: fewerPods, pods: 1},
		{kind: tasksEnd, tasks: []string{"t1", "t2"}, others: 3},
		{kind: higherClass, class: "truth-mid", tasks: []string{"t4"}},
		{kind: borrowLimit, pool: "truth.a", amounts: quota.Resources{catalog.GPU: 6, catalog.Memory: 1024*catalog.GiB + catalog.GiB/2}},
		{kind: moreQuota, pool: "truth.b", amounts: quota.Resources{catalog.CPU: 500}},
	}
	if diff := cmp.Diff(want, got.changes, cmp.AllowUnexported(change{})); diff != "" || got.headline != "2 GPUs short." {
		t.Errorf("headline %q; changes (-want +got):\n%s", got.headline, diff)
	}
	if _, err := parse(`<li><b>Waiting</b> helps</li>`); err == nil {
		t.Error("an unknown change is no error")
	}
}
