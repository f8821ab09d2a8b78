package web_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// exchange sends raw bytes, which must request that the connection is closed, and
// returns the answer.
func exchange(t testing.TB, address, bytes string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(connection, bytes) }() // the answer can arrive before everything is sent
	text, _ := io.ReadAll(connection)                        // a server that refuses the request may cut it off
	return string(text)
}

// raw is like exchange, and also returns the statuses of all answers.
func raw(t testing.TB, address, bytes string) (statuses []int, text string) {
	t.Helper()
	text = exchange(t, address, bytes)
	answers := bufio.NewReader(strings.NewReader(text))
	for {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return statuses, text
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Errorf("after %s: %v", answer.Status, err)
		}
		statuses = append(statuses, answer.StatusCode)
	}
}
