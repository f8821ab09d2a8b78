package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/playwright-community/playwright-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestShares divides a team into shares, typed and imported from a scheduling policy of
// AWS Batch, and finds their usage on the page of the team.
func TestShares(t *testing.T) {
	c := clustertest.Get(t)
	noPolicy(t)
	c.Apply(t, `{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy, metadata: {name: default}, spec: {admissionFairSharing: {usageHalfLifeTime: 1m, usageSamplingInterval: 5s}}}`)
	team := makeTeam(t, "divided", 8)
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/"+team+"/edit")

	openMore(t, page)
	press(t, page, "Add share")
	must(t, expect.Locator(page.Locator("#share-0-name")).ToBeFocused())
	must(t, page.Locator("#share-0-name").Fill("Research 1"))
	must(t, page.Locator("#share-0-members").Fill("vision-research\nuser: ada@example.com"))
	must(t, expect.Locator(page.Locator("#share-0-name-error")).ToContainText("lower-case letters"))
	must(t, page.Locator("#share-0-weight").Fill("0"))
	must(t, expect.Locator(page.Locator("#share-0-weight-error")).ToContainText("at least 1"))
	checkAppearance(t, page, "shares-errors")
	must(t, page.Locator("#share-0-name").Fill("highpri"))
	must(t, page.Locator("#share-0-weight").Fill("9"))
	must(t, expect.Locator(page.Locator("#share-0-name-error, #share-0-weight-error")).ToHaveCount(0))

	// The import replaces the weight, and keeps the members.
	must(t, page.Locator(".batch-import summary").Click())
	must(t, page.Locator("#batch").Fill(`{"fairsharePolicy": {"shareDecaySeconds": 3600}}`))
	press(t, page, "Import shares")
	must(t, expect.Locator(page.Locator("#batch-notes")).ToContainText("has no shareDistribution"))
	must(t, expect.Locator(page.Locator("#share-0-weight")).ToHaveValue("9"))
	must(t, page.Locator("#batch").Fill(`{"schedulingPolicies": [{"name": "research", "fairsharePolicy": {"shareDecaySeconds": 7200, "computeReservation": 10, "shareDistribution": [
		{"shareIdentifier": "HIGHPRI", "weightFactor": 1}, {"shareIdentifier": "MIDPRI", "weightFactor": 3}, {"shareIdentifier": "LOWPRI*", "weightFactor": 5}]}}]}`))
	press(t, page, "Import shares")
	for i, want := range []struct{ name, weight string }{{"highpri", "15"}, {"midpri", "5"}, {"lowpri", "3"}} {
		must(t, expect.Locator(page.Locator(fmt.Sprintf("#share-%d-name", i))).ToHaveValue(want.name))
		must(t, expect.Locator(page.Locator(fmt.Sprintf("#share-%d-weight", i))).ToHaveValue(want.weight))
	}
	must(t, expect.Locator(page.Locator("#share-0-members")).ToHaveValue(regexp.MustCompile("vision-research")))
	must(t, expect.Locator(page.Locator("#batch-notes")).ToContainText("computeReservation"))
	must(t, expect.Locator(page.Locator("#batch-notes")).ToContainText("the half-life of usage is 2h"))
	checkAppearance(t, page, "shares-import")

	review(t, page)
	must(t, expect.Locator(page.Locator("#review-shares")).ToContainText("Usage outranks priority inside this team"))
	checkAppearance(t, page, "shares-review")
	must(t, button(page, "Save changes").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(team+`\?saved=`)))
	must(t, expect.Locator(page.Locator("#detail-settings")).ToContainText("highpri 15 (Group vision-research, User ada@example.com), midpri 5, lowpri 3"))
	checkAppearance(t, page, "shares-allocation")
	queue := desired.DefaultNaming.ShareQueue(team, "midpri")
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		var local kueue.LocalQueue
		return c.Client.Get(ctx, client.ObjectKey{Namespace: "hyperpod-ns-" + team, Name: queue}, &local)
	})

	c.Apply(t, strings.Replace(jobManifest(team, "busy", 4), "hyperpod-ns-"+team+"-localqueue", queue, 1))
	waitForUsage(t, team, "4")
	c.Apply(t, strings.Replace(jobManifest(team, "waits", 8), "hyperpod-ns-"+team+"-localqueue", desired.DefaultNaming.ShareQueue(team, "lowpri"), 1))
	open(t, page, "/teams/"+team)
	row := page.Locator("#team-inside tr", playwright.PageLocatorOptions{HasText: queue})
	must(t, expect.Locator(row).ToContainText(regexp.MustCompile(`[1-9.]+ GPU`)))
	must(t, expect.Locator(row).ToContainText("100 %"))
	must(t, expect.Locator(page.Locator("#team-queue")).ToContainText("waits"))
	checkAppearance(t, page, "shares-team")
}
