package truth_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var (
	previews = flag.Int("previews", 30, "how many changes of allocations and of the policy are previewed and made")
	perSeed  = flag.Int("previews-per-seed", 10, "how many of them are made one after the other in the cohort of one seed")
)

// wantPredicted is how many changes must have exactly the effects of their previews, in
// percent of those that no tie decides.
const wantPredicted = 99

// beforeSaving is how long after its preview a change is saved.
const beforeSaving = 2 * time.Second

const (
	allocationSubject = "allocation"
	policySubject     = "policy"
)

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
	subject string // policySubject or allocationSubject
	what    string
	said    forecast
	skipped string
	wrong   []string // what differs; empty for a right preview
}

// TestPreviews makes random changes of allocations and of the policy in the forms of the
// console, each two seconds after its preview, and compares their effects with the
// preview.
func TestPreviews(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	l := newLab(t, c)
	for _, class := range classes { // the policy creates them
		if err := client.IgnoreNotFound(c.Client.Delete(t.Context(), &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}})); err != nil {
			t.Fatal(err)
		}
	}
	l.start(t, c, "previews", "KUOTA_MANAGE_KUEUE=true")
	t.Cleanup(func() { _ = l.client.Delete(context.Background(), randomPolicy(rand.New(rand.NewPCG(0, 0)))) })
	var all []prediction
	for seed := *firstSeed; len(all) < *previews; seed++ {
		found, err := l.predict(t.Context(), seed, min(*perSeed, *previews-len(all)))
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for _, p := range found {
			if *verbose || len(p.wrong) > 0 {
				fmt.Printf("preview %s seed %d: %s: says %v, %s; wrong: %s\n", p.subject, p.seed, p.what, p.said.effects, p.skipped, strings.Join(p.wrong, "; "))
			}
		}
		if all = append(all, found...); t.Context().Err() != nil || len(found) == 0 && err != nil {
			break
		}
	}
	for _, subject := range []string{policySubject, allocationSubject} {
		reportPredictions(subject, slices.DeleteFunc(slices.Clone(all), func(p prediction) bool { return p.subject != subject }))
	}
	if right := reportPredictions("all", all); right.tooFew(wantPredicted) || right.of == 0 {
		t.Errorf("previews: got %.1f %% of %d right, want at least %d %%", right.percent(), right.of, wantPredicted)
	}
}

// predict previews and makes changes in the cohort of a seed.
func (l *lab) predict(ctx context.Context, seed uint64, changes int) (all []prediction, err error) {
	ctx, cancel := context.WithTimeout(ctx, seedLimit)
	defer cancel()
	random := rand.New(rand.NewPCG(seed, 22))
	if err := l.usePolicy(ctx, randomPolicy(random)); err != nil {
		return nil, err
	}
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
		p := prediction{seed: seed, subject: allocationSubject}
		form := formOfAllocation(in.teams[random.IntN(len(in.teams))].Name)
		if random.IntN(4) == 0 {
			p.subject, form = policySubject, formOfPolicy
		}
		var save func() error
		if p.what, p.said, save, err = l.review(ctx, form, random); err != nil {
			return all, err
		}
		time.Sleep(beforeSaving)
		if err = save(); err != nil {
			return all, err
		}
		if err = until(ctx, func() error { return errors.Join(in.applied(ctx), l.policyApplied(ctx)) }); err != nil {
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

// changeable is a form in which something is changed at random.
type changeable struct {
	path         string
	form, review string                                            // selectors of the form and of its review
	edit         func(values url.Values, random *rand.Rand) string // returns what it changed
}

func formOfAllocation(team string) changeable {
	return changeable{path: "/policies/allocations/" + team + "/edit", form: "form#allocation-form", review: "form#review-form", edit: func(values url.Values, random *rand.Rand) string {
		return team + " " + editAllocation(values, random)
	}}
}

var formOfPolicy = changeable{path: "/policies/cluster/edit", form: "form#policy-form", review: "form#policy-review", edit: editPolicy}

// review changes something in a form and reads the preview of its review. save saves the
// change.
func (l *lab) review(ctx context.Context, of changeable, random *rand.Rand) (what string, said forecast, save func() error, err error) {
	form, err := l.open(ctx, http.MethodGet, of.path, nil)
	if err != nil {
		return "", said, nil, err
	}
	values := formValues(form.Find(of.form))
	if len(values) == 0 {
		return "", said, nil, fmt.Errorf("the form at %s has no values", of.path)
	}
	var review *goquery.Document
	for unchanged := true; unchanged; unchanged = strings.Contains(text(review.Find("main")), "Saving changes nothing") {
		what = of.edit(values, random)
		if review, err = l.submitForm(ctx, form, of.form, values, "review"); err != nil {
			return what, said, nil, err
		}
	}
	if review.Find(of.review).Length() != 1 {
		return what, said, nil, fmt.Errorf("%s: no review, but %s", what, text(review.Find("main")))
	}
	if said, err = l.preview(ctx, review); err != nil {
		return what, said, nil, err
	}
	return what, said, func() error {
		_, err := l.submitForm(ctx, review, of.review, formValues(review.Find(of.review)), "save")
		return err
	}, nil
}

// setter returns a function that sets a value of a form and returns what it changed.
func setter(values url.Values) func(name, value string) string {
	return func(name, value string) string {
		before := values.Get(name)
		if values.Set(name, value); value == "" {
			values.Del(name)
		}
		return fmt.Sprintf("%s %s→%s", name, before, value)
	}
}

// editPolicy changes one input of the form of the policy, and returns what.
func editPolicy(values url.Values, random *rand.Rand) string {
	set := setter(values)
	switch random.IntN(5) {
	case 0:
		return set("prioritization", oneOf(random, "FirstComeFirstServe", "TaskRanking"))
	case 1:
		return set("idle", oneOf(random, "FirstComeFirstServe", "FairShare"))
	case 2:
		return set("share-unallocated", oneOf(random, "", "true"))
	}
	return set(fmt.Sprintf("class-%d-weight", random.IntN(len(classes))), strconv.Itoa(random.IntN(101)))
}

// editAllocation changes one input of the form of an allocation, and returns what.
func editAllocation(values url.Values, random *rand.Rand) string {
	set := setter(values)
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
	if page.Find("#preview").Length() == 0 {
		return said, fmt.Errorf("%s has no preview", page.Url.Path)
	}
	err = l.stream(ctx, page, func(part *goquery.Document) (ready bool) {
		said, ready = parsePreview(part.Find("#preview"))
		return ready
	})
	return said, err
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

// reportPredictions prints the figures of some previews.
func reportPredictions(subject string, all []prediction) (right share) {
	skipped, effective := map[string]int{}, 0
	for _, p := range all {
		if len(p.said.effects) > 0 {
			effective++
		}
		if p.skipped != "" {
			skipped[p.skipped]++
			continue
		}
		right.add(is(len(p.wrong) == 0))
	}
	fmt.Printf("figure truth_previews_%s %d previews, %d of which predict an effect on tasks, skipped %v\n", subject, len(all), effective, skipped)
	fmt.Printf("figure truth_previews_%s_right %.1f %% (%d of %d)\n", subject, right.percent(), right.right, right.of)
	return right
}

// randomPolicy returns a policy with the classes of the tasks.
func randomPolicy(random *rand.Rand) *v1alpha1.ClusterPolicy {
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	policy.Spec.TaskPrioritization = oneOf(random, v1alpha1.TaskRanking, v1alpha1.TaskRanking, v1alpha1.FirstComeFirstServe)
	policy.Spec.IdleCompute = v1alpha1.IdleCompute{Strategy: oneOf(random, v1alpha1.IdleFairShare, v1alpha1.IdleFirstComeFirstServe), ShareUnallocated: random.IntN(2) == 0}
	policy.Spec.Enforcement = v1alpha1.EnforcementNone
	for i, name := range classes {
		policy.Spec.PriorityClasses = append(policy.Spec.PriorityClasses, v1alpha1.PriorityClass{Name: strings.TrimSuffix(name, classSuffix), Weight: ptr.To(int32(20 * (i + 1)))})
	}
	return policy
}

// usePolicy creates or updates the policy, and returns once Kuota has applied it.
func (l *lab) usePolicy(ctx context.Context, policy *v1alpha1.ClusterPolicy) error {
	now := &v1alpha1.ClusterPolicy{}
	switch err := l.client.Get(ctx, client.ObjectKeyFromObject(policy), now); {
	case apierrors.IsNotFound(err):
		err = l.client.Create(ctx, policy)
		if err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		now.Spec = policy.Spec
		if err := l.client.Update(ctx, now); err != nil {
			return err
		}
	}
	return until(ctx, func() error { return l.policyApplied(ctx) })
}

// policyApplied returns nil once Kuota has applied the policy as it is now.
func (l *lab) policyApplied(ctx context.Context) error {
	var now v1alpha1.ClusterPolicy
	if err := l.client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &now); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady) || now.Status.ObservedGeneration != now.Generation || now.Status.Ranking == nil || now.Status.Ranking.Step != v1alpha1.RankingSettled {
		return fmt.Errorf("the policy is not applied: %+v", now.Status)
	}
	return nil
}
