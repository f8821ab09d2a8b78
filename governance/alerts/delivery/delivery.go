package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	timeout   = 5 * time.Second
	maxAnswer = 4 << 10
	// maxLines bounds the alerts that a chat message lists.
	maxLines = 20
)

// Sender sends messages. Its fields must not change while it is used.
type Sender struct {
	// Secret returns the data of a Secret in the console's namespace.
	Secret  func(ctx context.Context, name string) (map[string][]byte, error)
	Cluster string // name of the cluster
	client  *http.Client

	mu   sync.Mutex
	last map[string]map[string][]byte // data of Secrets by name, when they were last read
}

// New returns a Sender with an HTTP client of its own.
func New(cluster string, secret func(ctx context.Context, name string) (map[string][]byte, error)) *Sender {
	return &Sender{Secret: secret, Cluster: cluster, last: map[string]map[string][]byte{}, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: timeout}).DialContext, TLSHandshakeTimeout: timeout,
			ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: 16 << 10, MaxConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
	}}
}

// Prepare reads the Secrets of receivers, so that messages can be sent to them while the API
// server is away. It forgets those of others.
func (s *Sender) Prepare(ctx context.Context, receivers []v1alpha1.AlertReceiver) {
	names := map[string]bool{}
	for _, r := range receivers {
		if !names[r.SecretName] {
			names[r.SecretName] = true
			_, _ = s.secret(ctx, r.SecretName) // Send reports it
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(name string, _ map[string][]byte) bool { return !names[name] })
}

// secret returns the data of a Secret; what was last read if the API server does not answer.
func (s *Sender) secret(ctx context.Context, name string) (map[string][]byte, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := s.Secret(limited, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	var answered apierrors.APIStatus
	switch last := s.last[name]; {
	case err == nil:
		s.last[name] = data
	case errors.As(err, &answered) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err):
		delete(s.last, name)
	case last != nil:
		return last, nil
	}
	return data, err
}

// Send sends a message to a receiver once. A webhook that answers with a status other
// than 2xx did not get it.
func (s *Sender) Send(ctx context.Context, to v1alpha1.AlertReceiver, m alerts.Message) error {
	data, err := s.secret(ctx, to.SecretName)
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", to.SecretName, err)
	}
	if to.Type == v1alpha1.EmailReceiver {
		return s.sendMail(ctx, to, data, m)
	}
	address, err := address(to.SecretName, data)
	if err != nil {
		return err
	}
	body, err := json.Marshal(s.body(to.Type, m))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the Secret has no valid address")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "kuota")
	request.Header.Set("Idempotency-Key", m.ID)
	response, err := s.client.Do(request)
	if err != nil {
		return withoutAddress(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // so that the connection can be used again
	switch {
	case response.StatusCode/100 == 3:
		return fmt.Errorf("the receiver redirects (status %d), which is not followed", response.StatusCode)
	case response.StatusCode/100 != 2:
		return fmt.Errorf("the receiver answered with status %d", response.StatusCode)
	}
	return nil
}

// address returns the address in the Secret of a webhook: https, or http on loopback.
func address(secret string, data map[string][]byte) (string, error) {
	text := strings.TrimSpace(string(data["url"]))
	if text == "" {
		return "", fmt.Errorf("the Secret %s has no key url", secret)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("the key url of Secret %s is no address", secret)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return "", fmt.Errorf("the address in Secret %s is not https", secret)
	}
	return text, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withoutAddress returns the cause of an error of the client.
func withoutAddress(err error) error {
	var of *url.Error
	if !errors.As(err, &of) {
		return err
	}
	var dial *net.OpError
	switch {
	case of.Timeout():
		return fmt.Errorf("the receiver did not answer within %s", timeout)
	case errors.As(of.Err, &dial):
		return fmt.Errorf("the receiver cannot be reached: %w", dial.Err)
	}
	return errors.New("the receiver broke the connection, or its answer is no HTTP")
}

// body returns a message in the format of a receiver.
func (s *Sender) body(kind v1alpha1.AlertReceiverType, m alerts.Message) any {
	switch kind {
	case v1alpha1.SlackReceiver:
		return map[string]string{"text": s.text(m, escapeSlack)}
	case v1alpha1.TeamsReceiver:
		block := map[string]any{"type": "TextBlock", "wrap": true, "text": s.text(m, func(text string) string { return text })}
		card := map[string]any{"type": "AdaptiveCard", "version": "1.4", "body": []any{block}}
		return map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
	}
	return struct {
		Cluster string `json:"cluster"`
		alerts.Message
	}{s.Cluster, m}
}

// text returns a message as lines, one for each alert.
func (s *Sender) text(m alerts.Message, escape func(string) string) string {
	if m.Test {
		return escape("Kuota, " + s.Cluster + ": this is a test. Alerts arrive here.")
	}
	lines := []string{"Kuota, " + escape(s.Cluster) + ":"}
	if len(m.Tasks) > 0 {
		lines = []string{"Kuota, " + escape(s.Cluster) + ", tasks of " + escape(m.Person) + ":"}
	}
	for _, n := range m.Tasks {
		lines = append(lines, escape(notice(n)))
	}
	for i, a := range m.Alerts {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(m.Alerts)-maxLines))
			break
		}
		lines = append(lines, escape(strings.ToUpper(a.State)+" "+a.Title+": "+a.Summary))
	}
	return strings.Join(lines, "\n\n")
}

// happened is what an event of tasks is in words.
var happened = map[string]string{"start": "started", "end": "ended", "fail": "failed", "preempt": "preempted"}

// counted returns how many tasks had an event, such as "2 tasks failed".
func counted(n alerts.TaskNotice) string {
	if n.Count == 1 {
		return "1 task " + happened[n.Event]
	}
	return fmt.Sprintf("%d tasks %s", n.Count, happened[n.Event])
}

// notice returns what happened to tasks in one line.
func notice(n alerts.TaskNotice) string {
	text := counted(n)
	if n.Team != "" {
		text += " in team " + n.Team
	}
	text += ": " + strings.Join(n.Names, ", ")
	if more := n.Count - len(n.Names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapeSlack keeps Slack from reading text as a link or a mention.
func escapeSlack(text string) string { return slackEscapes.Replace(text) }
