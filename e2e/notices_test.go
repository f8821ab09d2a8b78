package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// mailbox is a mail server on loopback, with what it got.
type mailbox struct {
	mu   sync.Mutex
	text strings.Builder
}

func (m *mailbox) got() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// serve starts the server and returns its address.
func (m *mailbox) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go m.converse(conn)
		}
	}()
	return listener.Addr().String()
}

func (m *mailbox) converse(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	answer := "220 test\r\n"
	for inData := false; ; {
		if answer != "" {
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
		if !lines.Scan() {
			return
		}
		line := lines.Text()
		m.mu.Lock()
		m.text.WriteString(line + "\n")
		m.mu.Unlock()
		switch {
		case inData && line != ".":
			answer = ""
		case line == "DATA":
			inData, answer = true, "354 go on\r\n"
		default:
			inData, answer = false, "250 ok\r\n"
		}
	}
}

// noticed counts the tasks of the messages that a webhook got, by event.
type noticed struct {
	mu     sync.Mutex
	counts map[string]int
	odd    []string
}

func (n *noticed) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var m struct {
		Person string
		Tasks  []struct {
			Event, Team string
			Count       int
			Names       []string
		}
	}
	text, _ := io.ReadAll(request.Body)
	err := json.Unmarshal(text, &m)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	if err != nil || m.Person != "ada@example.com" {
		n.odd = append(n.odd, string(text))
	}
	for _, task := range m.Tasks {
		n.counts[task.Event+" "+task.Team] += task.Count
	}
}

func (n *noticed) count(event, team string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[event+" "+team]
}

// TestNotices lets a person choose on the page how they hear of their tasks: by mail to their
// verified address and by a webhook of their team. Tasks that they submit on the real Kueue then
// arrive there, each start and end once. Messages are made once a minute, which
// only make verify waits for.
func TestNotices(t *testing.T) {
	c := clustertest.Get(t)
	address := console(t)
	mail, hook := &mailbox{}, &noticed{}
	server := httptest.NewServer(hook)
	t.Cleanup(server.Close)
	for name, data := range map[string]string{"notices-hook": `"url":"` + server.URL + `"`, "notices-mail": `"server":"` + mail.serve(t) + `","from":"kuota@example.com"`} {
		c.Apply(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"`+name+`","namespace":"kuota-system"},"stringData":{`+data+`}}`)
	}
	noPolicy(t)
	own, other := makeTenant(t, "notices", "vision-team"), makeTenant(t, "notices-other", "language-team")
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/notices")
	must(t, expect.Locator(page.Locator("#notices-none")).ToContainText("An admin can allow one"))
	c.Apply(t, `{"apiVersion":"kuota.dev/v1alpha1","kind":"ClusterPolicy","metadata":{"name":"default"},"spec":{"alerts":{"receivers":[
		{"name":"mail","type":"Email","secretName":"notices-mail","notices":"Only"},
		{"name":"hook","secretName":"notices-hook","notices":"Only","team":"`+own.team+`"},
		{"name":"other","secretName":"notices-hook","notices":"Only","team":"`+other.team+`"}]}}}`)
	ada, grace := personToken(t, "ada"), personToken(t, "grace")
	defer ask(t, "PUT", address+"/api/v1/notices", ada, map[string][]string{"on": {}, "to": {}})
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member
		if _, body := fetch(t, user(t, address, "ada"), address+"/notices"); !strings.Contains(body, `value="hook"`) {
			return fmt.Errorf("ada cannot choose the receiver of %s", own.team)
		}
		return nil
	})

	open(t, page, "/tasks")
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Notify me"}).Click())
	must(t, expect.Locator(page.Locator("#to-other")).ToHaveCount(0))
	must(t, expect.Locator(page.Locator("#to-mail-hint")).ToHaveText("E-mail to ada@example.com."))
	must(t, page.Locator("#on-end").Check())
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Save notices"}).Click())
	must(t, expect.Locator(page.Locator("#to-error")).ToContainText("Choose how you are notified"))
	for _, id := range []string{"#on-start", "#to-mail", "#to-hook"} {
		must(t, page.Locator(id).Check())
	}
	checkAppearance(t, page, "notices")
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Save notices"}).Click())
	must(t, expect.Locator(page.Locator(".notice-ok")).ToContainText("Your notices were saved."))
	must(t, expect.Locator(page.Locator("#on-end")).ToBeChecked())
	must(t, expect.Locator(page.Locator("#on-fail")).Not().ToBeChecked())

	// The API and the shell have the same, and only of the person that asks.
	if out, _, err := kuota(t, address, "notices", "--token", ada); err != nil || !strings.Contains(out, "You get notices on start, end by mail, hook.") {
		t.Errorf("kuota notices prints %q, %v", out, err)
	}
	if status, body := ask(t, "GET", address+"/api/v1/notices", grace, nil); status != http.StatusOK || strings.Contains(body, "ada@") || !strings.Contains(body, `"on":[]`) {
		t.Errorf("grace reads %d %s", status, body)
	}
	for _, to := range []string{"hook", "ada@example.com"} {
		if status, body := ask(t, "PUT", address+"/api/v1/notices", grace, map[string][]string{"on": {"end"}, "to": {to}}); status != http.StatusUnprocessableEntity {
			t.Errorf("grace chooses %s: %d %s", to, status, body)
		}
	}
	if !clustertest.Verify {
		return
	}
	manifest := strings.Replace(strings.ReplaceAll(launchJob, "NAME", "lr"), "delay: 1h", "delay: 1s", 1)
	for i := range 3 {
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // Kueue restarts after a new policy
			status, body := ask(t, "POST", address+"/api/v1/teams/"+own.team+"/tasks", ada, map[string]string{"manifest": manifest}, "Idempotency-Key", fmt.Sprint(own.team, i))
			if status != http.StatusCreated {
				return fmt.Errorf("submit: %d %s", status, body)
			}
			return nil
		})
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if started, ended := hook.count("start", own.team), hook.count("end", own.team); started != 3 || ended != 3 {
			return fmt.Errorf("the webhook heard of %d starts and %d ends, want 3 of each", started, ended)
		}
		if text := mail.got(); !strings.Contains(text, "RCPT TO:<ada@example.com>") || !strings.Contains(text, "3 tasks ended in team "+own.team) && strings.Count(text, "ended in team "+own.team) < 2 {
			return fmt.Errorf("the mail server got %s", text)
		}
		return nil
	})
	if hook.count("start", other.team)+hook.count("preempt", own.team) > 0 || len(hook.odd) > 0 {
		t.Errorf("the webhook got %v and %q", hook.counts, hook.odd)
	}
	if text := mail.got(); strings.Count(text, "RCPT TO:") != strings.Count(text, "RCPT TO:<ada@example.com>") {
		t.Errorf("mail went to others: %s", text)
	}
}
