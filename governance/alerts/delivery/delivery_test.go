package delivery

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Messages reach receivers in their format, and those that are down, slow or hostile end
// within the time limit, without their address in the error.
func TestSend(t *testing.T) {
	t.Parallel()
	var got []byte
	stop := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/secret-ok":
			got, _ = io.ReadAll(r.Body)
		case "/secret-redirect":
			http.Redirect(w, r, "/secret-ok", http.StatusTemporaryRedirect)
		case "/secret-error":
			w.WriteHeader(http.StatusInternalServerError)
		case "/secret-slow":
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		case "/secret-endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	}))
	defer receiver.Close()
	defer close(stop)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	addresses := map[string]string{
		"ok": receiver.URL + "/secret-ok", "redirect": receiver.URL + "/secret-redirect", "error": receiver.URL + "/secret-error", "slow": receiver.URL + "/secret-slow",
		"endless": receiver.URL + "/secret-endless", "down": down.URL + "/secret", "plain": "http://192.0.2.1/secret", "file": "file:///secret", "none": "", "junk": "secret",
	}
	sender := New("prod <1>", func(_ context.Context, name string) (map[string][]byte, error) {
		if name == "missing" {
			return nil, errors.New("not found")
		}
		return map[string][]byte{"url": []byte(addresses[name] + "\n")}, nil
	})
	m := alerts.Message{ID: "m1", Alerts: []alerts.SentAlert{{ID: "a", Title: "Tasks wait", State: "firing", Summary: "<!channel> & more"}}}
	for name, want := range map[string]string{
		"ok": "", "endless": "", "redirect": "not followed", "error": "status 500", "slow": "within 5s", "down": "cannot be reached", "plain": "not https", "file": "no address", "none": "no key url", "junk": "no address", "missing": "not found",
	} {
		began := time.Now()
		err := sender.Send(t.Context(), v1alpha1.AlertReceiver{Name: name, SecretName: name, Type: v1alpha1.WebhookReceiver}, m)
		switch {
		case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: got error %v, want %q", name, err, want)
		case err != nil && strings.Contains(err.Error(), "/secret"):
			t.Errorf("%s: the error has the address: %v", name, err)
		}
		if took := time.Since(began); took > timeout+30*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
	for kind, want := range map[v1alpha1.AlertReceiverType][]string{
		v1alpha1.WebhookReceiver: {`"cluster":"prod \u003c1\u003e"`, `"id":"m1"`, `"state":"firing"`},
		v1alpha1.SlackReceiver:   {`FIRING Tasks wait: \u0026lt;!channel\u0026gt; \u0026amp; more`},
		v1alpha1.TeamsReceiver:   {`"AdaptiveCard"`, `FIRING Tasks wait`},
	} {
		if err := sender.Send(t.Context(), v1alpha1.AlertReceiver{SecretName: "ok", Type: kind}, m); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(got), text) || !json.Valid(got) {
				t.Errorf("%s: got %s, want %s", kind, got, text)
			}
		}
	}
}

// A Secret that was prepared is used while the API server does not answer, and not once it was
// deleted or no receiver has it.
func TestPrepare(t *testing.T) {
	t.Parallel()
	received := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received++ }))
	defer receiver.Close()
	var failure error
	sender := New("prod", func(context.Context, string) (map[string][]byte, error) {
		return map[string][]byte{"url": []byte(receiver.URL)}, failure
	})
	ops, other := v1alpha1.AlertReceiver{Name: "ops", SecretName: "ops"}, v1alpha1.AlertReceiver{Name: "other", SecretName: "other"}
	sender.Prepare(t.Context(), []v1alpha1.AlertReceiver{ops, ops, other})
	sender.Prepare(t.Context(), []v1alpha1.AlertReceiver{ops})
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, step := range []struct {
		to      v1alpha1.AlertReceiver
		failure error
		sent    bool
	}{
		{ops, syscall.ECONNREFUSED, true},
		{other, syscall.ECONNREFUSED, false},
		{ops, apierrors.NewServiceUnavailable("starting"), true},
		{ops, apierrors.NewNotFound(secrets, "ops"), false},
		{ops, syscall.ECONNREFUSED, false},
	} {
		before := received
		failure = step.failure
		err := sender.Send(t.Context(), step.to, alerts.Message{ID: "m"})
		if sent := received > before; sent != step.sent || (err == nil) != sent {
			t.Errorf("to %s with %v: sent %t, error %v, want sent %t", step.to.Name, step.failure, sent, err, step.sent)
		}
	}
}

// mailServer answers SMTP on loopback, and returns what it got.
func mailServer(t *testing.T, answer func(line string) string) (address string, got func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var mu sync.Mutex
	var all strings.Builder
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for line, inData := "", false; ; {
					if !inData || line == "." {
						inData = line == "DATA"
						if _, err := io.WriteString(conn, answer(line)); err != nil {
							return
						}
					}
					if !lines.Scan() {
						return
					}
					line = lines.Text()
					mu.Lock()
					all.WriteString(line + "\n")
					mu.Unlock()
				}
			}()
		}
	}()
	return listener.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

// Mail servers get messages with all addresses once, and those that are down, slow or
// hostile end within the time limit.
func TestSendMail(t *testing.T) {
	t.Parallel()
	polite := func(line string) string {
		switch verb, _, _ := strings.Cut(line, " "); {
		case line == "":
			return "220 test\r\n"
		case verb == "EHLO":
			return "250 test\r\n"
		case line == "DATA":
			return "354 go on\r\n"
		case verb == "QUIT":
			return "500 no\r\n" // after the message: no reason to send it again
		}
		return "250 ok\r\n"
	}
	good, got := mailServer(t, polite)
	personal, gotPersonal := mailServer(t, polite)
	refusing, _ := mailServer(t, func(line string) string {
		if strings.HasPrefix(line, "RCPT") {
			return "550 " + strings.Repeat("no ", 1000) + "\r\n"
		}
		return polite(line)
	})
	picky, gotPicky := mailServer(t, func(line string) string {
		if strings.HasPrefix(line, "RCPT TO:<a@") {
			return "550 no such user\r\n"
		}
		return polite(line)
	})
	silent, _ := mailServer(t, func(string) string { return "" })
	endless, _ := mailServer(t, func(string) string { return strings.Repeat("220-"+strings.Repeat("x", 1000)+"\r\n", 10_000) })
	secrets := map[string]string{"good": good, "refusing": refusing, "picky": picky, "silent": silent, "endless": endless, "down": "127.0.0.1:1", "junk": "a:b:c", "none": ""}
	sender := New("prod", func(_ context.Context, name string) (map[string][]byte, error) {
		return map[string][]byte{"server": []byte(secrets[name] + "\n"), "from": []byte("kuota@example.com")}, nil
	})
	m := alerts.Message{ID: "m1", Alerts: []alerts.SentAlert{{ID: "a", Title: "Tasks wait", State: "firing", Summary: "Job a waits.\r\n.\r\nQUIT"}}}
	secrets["personal"] = personal
	t.Run("notices", func(t *testing.T) {
		t.Parallel()
		to := v1alpha1.AlertReceiver{SecretName: "personal", Type: v1alpha1.EmailReceiver, To: []string{"ada@example.com"}}
		notice := alerts.Message{ID: "n1", Person: "ada", Tasks: []alerts.TaskNotice{
			{Event: "fail", Team: "vision", Count: 1, Names: []string{"train"}}, {Event: "end", Count: 200, Names: []string{"sweep-0", "sweep-1"}}, {Event: "preempt", Team: "vision", Count: 2, Names: []string{"b", "c"}},
		}}
		if err := sender.Send(t.Context(), to, notice); err != nil {
			t.Fatal(err)
		}
		text := gotPersonal()
		for _, part := range []string{
			"RCPT TO:<ada@example.com>", "Subject: Kuota, prod: 1 task failed, 200 tasks ended, 2 tasks preempted", "Kuota, prod, tasks of ada:",
			"1 task failed in team vision: train\n", "200 tasks ended: sweep-0, sweep-1, and 198 more\n", "2 tasks preempted in team vision: b, c\n",
		} {
			if strings.Count(text, part) != 1 {
				t.Errorf("got %s, want %q once", text, part)
			}
		}
		for _, name := range []string{"refusing", "down", "none"} {
			to.SecretName = name
			if err := sender.Send(t.Context(), to, notice); err == nil || strings.Contains(err.Error(), "ada") {
				t.Errorf("%s: got error %v, want one without the address", name, err)
			}
		}
	})
	for name, want := range map[string]string{
		"good": "", "refusing": "rejects the message", "picky": "not to a@example.com: the mail server rejects", "silent": "within 5s", "endless": "cannot be used", "down": "cannot be used", "junk": "no mail server", "none": "no mail server",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			err := sender.Send(t.Context(), v1alpha1.AlertReceiver{SecretName: name, Type: v1alpha1.EmailReceiver, To: []string{"a@example.com", "b@example.com"}}, m)
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || len(err.Error()) > 300) {
				t.Errorf("got error %v, want %q", err, want)
			}
			if took := time.Since(began); took > timeout+30*time.Second {
				t.Errorf("took %s", took)
			}
			switch name {
			case "picky":
				if text := gotPicky(); !errors.As(err, new(alerts.PartlyError)) || strings.Count(text, "\nDATA") != 1 || !strings.Contains(text, "FIRING Tasks wait: Job a waits.") {
					t.Errorf("got %s and error %v, want one message", text, err)
				}
				return
			case "refusing":
				if errors.As(err, new(alerts.PartlyError)) {
					t.Errorf("got error %v, as if it was sent", err)
				}
				return
			case "good":
			default:
				return
			}
			text := got()
			for _, part := range []string{"MAIL FROM:<kuota@example.com>", "RCPT TO:<a@example.com>", "RCPT TO:<b@example.com>", "Subject: Kuota, prod: FIRING Tasks wait", "FIRING Tasks wait: Job a waits."} {
				if strings.Count(text, part) != 1 {
					t.Errorf("got %s, want %q once", text, part)
				}
			}
		})
	}
}
