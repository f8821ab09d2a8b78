package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/wneessen/go-mail"
)

const (
	submissionPort = 587
	smtpsPort      = 465
	// maxConversation bounds what is read of a mail server for one message.
	maxConversation = 256 << 10
)

// sendMail sends a message by SMTP, once to each address. It encrypts the connection,
// unless the server is on loopback.
func (s *Sender) sendMail(ctx context.Context, to v1alpha1.AlertReceiver, secret map[string][]byte, m alerts.Message) error {
	value := func(key string) string { return strings.TrimSpace(string(secret[key])) }
	host, port, err := serverOf(value("server"))
	if err != nil {
		return fmt.Errorf("the key server of Secret %s is no mail server, such as smtp.example.com:587", to.SecretName)
	}
	message := mail.NewMsg()
	if err := message.From(value("from")); err != nil {
		return fmt.Errorf("the key from of Secret %s is no e-mail address", to.SecretName)
	}
	if err := message.To(to.To...); err != nil {
		return errors.New("an address of the receiver is not valid")
	}
	message.SetMessageIDWithValue(m.ID + "@kuota")
	message.Subject(s.subject(m))
	message.SetBodyString(mail.TypeTextPlain, s.text(m, func(text string) string { return text }))

	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	options := []mail.Option{
		mail.WithPort(port), mail.WithTimeout(timeout),
		mail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &boundedConn{conn, io.LimitReader(conn, maxConversation), deadline}, conn.SetDeadline(deadline)
		}),
	}
	switch {
	case port == smtpsPort:
		options = append(options, mail.WithSSL())
	case isLoopback(host):
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if name := value("username"); name != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(name), mail.WithPassword(value("password")))
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return fmt.Errorf("the Secret %s describes no mail server", to.SecretName)
	}
	conversation, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return withoutServer(err)
	}
	defer func() { _ = client.CloseWithSMTPClient(conversation) }() // the message is sent or not by then
	err = client.SendWithSMTPClient(conversation, message)
	var failed *mail.SendError
	if errors.As(err, &failed) && failed.Reason == mail.ErrSMTPRcptTo && !failed.IsTemp() {
		return sendToEach(to.To, func(address string) error {
			if err := message.To(address); err != nil {
				return err
			}
			return client.SendWithSMTPClient(conversation, message)
		})
	}
	return withoutServer(err)
}

// sendToEach sends a message, of which the server rejected an address, to one address after
// the other. Its error is an alerts.PartlyError unless all failed.
func sendToEach(addresses []string, send func(address string) error) error {
	var failed []string
	var first error
	for _, address := range addresses {
		if err := send(address); err != nil {
			failed = append(failed, address)
			first = cmp.Or(first, err)
		}
	}
	switch first = withoutServer(first); {
	case len(failed) == 0 || len(failed) == len(addresses):
		return first
	default:
		return alerts.PartlyError(fmt.Sprintf("not to %s: %s", strings.Join(failed, ", "), first))
	}
}

// serverOf returns host and port of "host" or "host:port".
func serverOf(text string) (host string, port int, err error) {
	if !strings.Contains(text, ":") {
		text = net.JoinHostPort(text, strconv.Itoa(submissionPort))
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err == nil && (host == "" || n == 0) {
		err = errors.New("no host or port")
	}
	return host, int(n), err
}

// withoutServer returns the cause of an error of the client, without what the server
// said, which can be of any length.
func withoutServer(err error) error {
	var failed *mail.SendError
	var timedOut net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return fmt.Errorf("the mail server rejects the message: %s", failed.Reason)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timedOut) && timedOut.Timeout():
		return fmt.Errorf("the mail server did not answer within %s", timeout)
	}
	return fmt.Errorf("the mail server cannot be used: %s", shorten(err.Error()))
}

// shorten returns at most 200 characters of a text in one line.
func shorten(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > 200 {
		return string(runes[:200]) + "…"
	}
	return string(runes)
}

// subject returns what the message is about, in one line.
func (s *Sender) subject(m alerts.Message) string {
	about := "test"
	switch firing := 0; {
	case m.Test:
	case len(m.Tasks) > 0:
		var counts []string
		for _, n := range m.Tasks {
			counts = append(counts, counted(n))
		}
		about = strings.Join(counts, ", ")
	case len(m.Alerts)+m.More == 1:
		about = strings.ToUpper(m.Alerts[0].State) + " " + m.Alerts[0].Title
	default:
		for _, a := range m.Alerts {
			if a.State == "firing" {
				firing++
			}
		}
		about = fmt.Sprintf("%d of %d alerts fire", firing, len(m.Alerts))
	}
	return "Kuota, " + s.Cluster + ": " + about
}

// boundedConn is a connection of which only so much is read, until a time.
type boundedConn struct {
	net.Conn
	from     io.Reader
	deadline time.Time
}

func (c *boundedConn) Read(into []byte) (int, error) { return c.from.Read(into) }

// SetDeadline keeps the deadline of the conversation, which the client would extend with
// each command.
func (c *boundedConn) SetDeadline(time.Time) error { return c.Conn.SetDeadline(c.deadline) }
