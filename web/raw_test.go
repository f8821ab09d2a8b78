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

// exchange sends bytes as they are, which ask for the connection to be closed,
// and returns what came back.
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
	go func() { _, _ = io.WriteString(connection, bytes) }() // the answer may come before all is sent
	text, _ := io.ReadAll(connection)                        // a server that refuses what is sent may cut it off
	return string(text)
}

// raw does the same, and returns the statuses of all answers too.
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
