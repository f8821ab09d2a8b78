package truth_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
)

var (
	previews = flag.Int("previews", 30, "how many changes of allocations are previewed and made, half of them in each mode")
	perSeed  = flag.Int("previews-per-seed", 10, "how many of them are made one after the other in the cohort of one seed")
)

// wantPredicted is how many changes must have exactly the effects of their previews, in
// percent of those that no tie decides.
const wantPredicted = 99

// beforeSaving is how long after its preview a change is saved.
const beforeSaving = 2 * time.Second

// forecast is what a preview says: tasks by their effect. tied reports that chance
// decides about one of them.
type forecast struct {
	effects map[string][]string // started, preempted, evicted, missed, exceeding
	tied    bool
	failure string // why nothing is predicted; empty if it is
}

// prediction is one previewed change and what came of it.
type prediction struct {
	seed    uint64
	what    string
	said    forecast
	skipped string
	wrong   []string // what differs; empty for a right preview
}

// TestPreviews makes random changes of allocations in the forms of the console, each two
// seconds after its preview, and compares their effects with the preview.
func TestPreviews(t *testing.T) {
	if os.Getenv("KUOTA_VERIFY") == "" {
		t.Skip("takes minutes: set KUOTA_VERIFY=1")
	}
	c := clustertest.Get(t)
	l := newLab(t, c)
	for i, m := range modes() {
		t.Run(m, func(t *testing.T) {
			configure(t, c, m == "fair")
			l.start(t, c, "previews-"+m)
			var all []prediction
			want := *previews / len(modes())
			for seed := *firstSeed + uint64(i*want); len(all) < want; seed++ {
				found, err := l.predict(t.Context(), seed, min(*perSeed, want-len(all)))
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if all = append(all, found...); t.Context().Err() != nil || len(found) == 0 && err != nil {
					break
				}
			}
			reportPredictions(t, m, all)
		})
	}
}

// predict previews and makes changes in the cohort of a seed.
func (l *lab) predict(ctx context.Context, seed uint64, changes int) (all []prediction, err error) {
	ctx, cancel := context.WithTimeout(ctx, seedLimit)
	defer cancel()
	random := rand.New(rand.NewPCG(seed, 22))
	in, now, ok, err := l.begin(ctx, randomCohort(seed), kuotaSlot)
	defer func() {
		if e := in.remove(context.WithoutCancel(ctx), l.watcher); err == nil {
			err = e
		}
	}()
	if err != nil || !ok {
		return nil, err
	}
	for range changes {
		p := prediction{seed: seed}
		team := in.teams[random.IntN(len(in.teams))].Name
		var save func() error
		if p.what, p.said, save, err = l.review(ctx, team, random); err != nil {
			return all, err
		}
		time.Sleep(beforeSaving)
		if err = save(); err != nil {
			return all, err
		}
		if err = until(ctx, func() error { return in.applied(ctx) }); err != nil {
			return all, err
		}
		after, quiet := l.watcher.quiet(ctx, in, len(in.tasks), time.Now())
		switch {
		case p.said.failure != "":
			p.skipped = "not previewed: " + p.said.failure
		case !quiet:
			p.skipped = "restless"
		case p.said.tied:
			p.skipped = "tied"
		default:
			p.compare(now, after)
		}
		all = append(all, p)
		if !quiet {
			return all, nil
		}
		now = after
	}
	return all, nil
}

// compare compares a preview with the states before and after the change.
func (p *prediction) compare(before, after map[string]workload) {
	differ := func(what string, said, got []string) {
		if slices.Sort(said); !slices.Equal(said, got) {
			p.wrong = append(p.wrong, fmt.Sprintf("%s: %s, not %s", what, strings.Join(got, ","), strings.Join(said, ",")))
		}
	}
	lost := slices.Concat(p.said.effects["preempted"], p.said.effects["evicted"])
	var waiting []string // at the end
	gained := p.said.effects["started"]
	for name := range before {
		if !before[name].reserved && !slices.Contains(gained, name) || before[name].reserved && slices.Contains(lost, name) {
			waiting = append(waiting, name)
		}
	}
	var waits, starts []string
	for _, name := range sortedNames(after) {
		switch {
		case !after[name].reserved:
			waits = append(waits, name)
		case !before[name].reserved:
			starts = append(starts, name)
		}
	}
	differ("started", slices.Clone(gained), starts)
	differ("preempted", slices.Clone(p.said.effects["preempted"]), preempted(before, after))
	differ("waiting", waiting, waits)
}

// review changes something in the form of a team's allocation and reads the preview of
// its review. save saves the change.
func (l *lab) review(ctx context.Context, team string, random *rand.Rand) (what string, said forecast, save func() error, err error) {
	form, err := l.open(ctx, http.MethodGet, "/policies/allocations/"+team+"/edit", nil)
	if err != nil {
		return "", said, nil, err
	}
	values := formValues(form.Find("form#allocation-form"))
	if len(values) == 0 {
		return "", said, nil, fmt.Errorf("the form of %s has no values", team)
	}
	for before := values.Encode(); values.Encode() == before; {
		what = team + " " + edit(values, random)
	}
	review, err := l.submitForm(ctx, form, "form#allocation-form", values, "review")
	if err != nil {
		return what, said, nil, err
	}
	if review.Find("form#review-form").Length() != 1 {
		return what, said, nil, fmt.Errorf("%s: no review, but %s", what, text(review.Find("main")))
	}
	if said, err = l.preview(ctx, review); err != nil {
		return what, said, nil, err
	}
	return what, said, func() error {
		_, err := l.submitForm(ctx, review, "form#review-form", formValues(review.Find("form#review-form")), "save")
		return err
	}, nil
}

// edit changes one input of the form of an allocation, and returns what.
func edit(values url.Values, random *rand.Rand) string {
	set := func(name, value string) string {
		before := values.Get(name)
		values.Set(name, value)
		return fmt.Sprintf("%s %s→%s", name, before, value)
	}
	var rows []string
	for name := range values {
		if strings.HasPrefix(name, "row-") && strings.HasSuffix(name, "-accelerators") && values.Get(name) != "" {
			rows = append(rows, name)
		}
	}
	slices.Sort(rows)
	switch n := random.IntN(10); {
	case n < 5 && len(rows) > 0:
		name := oneOf(random, rows...)
		now, _ := strconv.Atoi(values.Get(name))
		return set(name, strconv.Itoa(max(1, now+oneOf(random, -4, -2, -1, 1, 2, 3, 4, 8))))
	case n < 6:
		return set("weight", strconv.Itoa(oneOf(random, 0, 1, 10, 50, 100)))
	case n < 7:
		return set("preemption", oneOf(random, "LowerPriority", "Never"))
	case n < 8:
		return set("activation", oneOf(random, "Active", "Active", "Hold"))
	case n < 9 && values.Get("strategy") == "LendAndBorrow" && values.Get("unlimited") == "":
		return set("borrow-percent", strconv.Itoa(oneOf(random, 0, 25, 50, 100, 200)))
	}
	return set("strategy", oneOf(random, "LendAndBorrow", "Lend", "DontLend"))
}

// preview waits until the stream of a page has its preview.
func (l *lab) preview(ctx context.Context, page *goquery.Document) (said forecast, err error) {
	body := page.Find("body")
	address, ok := body.Attr("data-stream")
	if !ok || page.Find("#preview").Length() == 0 {
		return said, fmt.Errorf("%s has no preview", page.Url.Path)
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.console+address+separator+url.Values{"as": {body.AttrOr("data-user", "")}}.Encode(), nil)
	if err != nil {
		return said, err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("Sec-Fetch-Mode", "cors")
	response, err := l.browser.Do(request)
	if err != nil {
		return said, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return said, fmt.Errorf("%s: %s", address, response.Status)
	}
	reader, data := bufio.NewReader(response.Body), strings.Builder{}
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return said, fmt.Errorf("stream of %s: %w", page.Url.Path, err)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data.WriteString(text)
			continue
		}
		if strings.TrimSpace(line) != "" {
			continue
		}
		part, err := goquery.NewDocumentFromReader(strings.NewReader(data.String()))
		if err != nil {
			return said, err
		}
		data.Reset()
		if said, ready := parsePreview(part.Find("#preview")); ready {
			return said, nil
		}
	}
}

// parsePreview returns what a preview says; ready is false while it is computed.
func parsePreview(part *goquery.Selection) (said forecast, ready bool) {
	variant := part.Find(".preview-variant").First()
	said.effects = map[string][]string{}
	switch variant.AttrOr("data-state", "") {
	case "ready":
	case "unverified":
		said.failure = text(variant.Find(".preview-state"))
		return said, true
	default:
		return said, false
	}
	variant.Find("tr[data-effect]").Each(func(_ int, row *goquery.Selection) {
		_, tied := row.Attr("data-tied")
		said.tied = said.tied || tied
		effect := row.AttrOr("data-effect", "")
		href := row.Find("th a").AttrOr("href", "")
		said.effects[effect] = append(said.effects[effect], href[strings.LastIndex(href, "/")+1:])
	})
	return said, true
}

// reportPredictions prints the figures of a mode, and one line for each preview that is
// wrong.
func reportPredictions(t *testing.T, mode string, all []prediction) {
	t.Helper()
	var right share
	skipped := map[string]int{}
	for _, p := range all {
		if *verbose || len(p.wrong) > 0 {
			fmt.Printf("preview %s seed %d: %s: says %v, %s; wrong: %s\n", mode, p.seed, p.what, p.said.effects, p.skipped, strings.Join(p.wrong, "; "))
		}
		if p.skipped != "" {
			skipped[p.skipped]++
			continue
		}
		right.add(is(len(p.wrong) == 0))
	}
	fmt.Printf("figure truth_%s_previews %d previews, skipped %v\n", mode, len(all), skipped)
	fmt.Printf("figure truth_%s_previews_right %.1f %% (%d of %d)\n", mode, right.percent(), right.right, right.of)
	if right.percent() < wantPredicted || right.of == 0 {
		t.Errorf("previews: got %.1f %% of %d right, want at least %d %%", right.percent(), right.of, wantPredicted)
	}
}
