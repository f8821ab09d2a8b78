package e2e_test

import (
	"net"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// A list whose stream is lost says so, and catches up by itself.
func TestListCatchesUp(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	team := shop(t, trainium, "lost", "accelerators: 0, vCPU: 1")
	for _, name := range []string{"stays", "goes"} {
		c.Kubectl(t, neuronJob(team, name, 200), "create", "-f", "-")
	}
	n := &network{address: freeAddress(t), target: strings.TrimPrefix(replica(t, "console-lost", "KUBECONFIG="+c.Dir+"/kubeconfig"), "http://")}
	n.listen(t)
	must(t, waitReady("http://"+n.address))
	page := visitAsNobody(t, playwright.BrowserNewContextOptions{BaseURL: playwright.String("http://" + n.address)}, "net::ERR", "status of 404") // without sign-in nobody answers who is signed in
	open(t, page, "/tasks?team="+team)
	must(t, see.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(2))
	leaveMark(t, page)
	status := page.Locator("#cluster-status")
	must(t, see.Locator(status).ToContainText("old"))

	n.frozen.Store(true)
	n.cut()
	must(t, see.Locator(status).ToContainText("connection lost, retrying"))
	accessible(t, page, "tasks-lost")
	c.Kubectl(t, "", "delete", "job", "goes", "-n", "hyperpod-ns-"+team)
	c.Kubectl(t, neuronJob(team, "comes", 200), "create", "-f", "-")
	n.frozen.Store(false)
	must(t, see.Locator(page.Locator("#tasks-table tbody tr", playwright.PageLocatorOptions{HasText: "comes"})).ToBeVisible())
	must(t, see.Locator(page.Locator("#tasks-table tbody tr", playwright.PageLocatorOptions{HasText: "goes"})).ToHaveCount(0))
	must(t, see.Locator(status).Not().ToContainText("connection lost"))
	neverLoaded(t, page)
}

// freeAddress is an address of this machine where nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, free.Close())
	return free.Addr().String()
}

// cut ends all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, connection := range n.open {
		connection.Close()
	}
}
