package e2e_test

import (
	"net"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestListReconnects checks that a list reports a lost stream, and that it reconnects
// and shows the changes since then.
func TestListReconnects(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	team := makePoolTeam(t, trainium, "lost", "accelerators: 0, vCPU: 1")
	for _, name := range []string{"kept", "deleted"} {
		c.Kubectl(t, neuronJob(team, name, 200), "create", "-f", "-")
	}
	n := &network{address: freeAddress(t), target: strings.TrimPrefix(replica(t, "console-lost", "KUBECONFIG="+c.Dir+"/kubeconfig"), "http://")}
	n.listen(t)
	must(t, waitReady("http://"+n.address))
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{BaseURL: playwright.String("http://" + n.address)}, "net::ERR", "status of 404") // without sign-in the console has no endpoint for the current user
	open(t, page, "/tasks?team="+team)
	must(t, expect.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(2))
	markLoaded(t, page)
	status := page.Locator("#cluster-status")
	must(t, expect.Locator(status).ToContainText("old"))

	n.frozen.Store(true)
	n.cut()
	must(t, expect.Locator(status).ToContainText("connection lost, retrying"))
	accessible(t, page, "tasks-lost")
	c.Kubectl(t, "", "delete", "job", "deleted", "-n", "hyperpod-ns-"+team)
	c.Kubectl(t, neuronJob(team, "created", 200), "create", "-f", "-")
	n.frozen.Store(false)
	must(t, expect.Locator(page.Locator("#tasks-table tbody tr", playwright.PageLocatorOptions{HasText: "created"})).ToBeVisible())
	must(t, expect.Locator(page.Locator("#tasks-table tbody tr", playwright.PageLocatorOptions{HasText: "deleted"})).ToHaveCount(0))
	must(t, expect.Locator(status).Not().ToContainText("connection lost"))
	notReloaded(t, page)
}

// freeAddress returns a local address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, free.Close())
	return free.Addr().String()
}

// cut closes all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, connection := range n.open {
		connection.Close()
	}
}
