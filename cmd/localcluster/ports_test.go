package main

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestATakenPortIsNamedWithItsFlag(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	err = checkPortFree(port, "--console-port")
	if err == nil {
		t.Fatal("a taken port was called free")
	}
	for _, want := range []string{strconv.Itoa(port), "--console-port", "already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestPortsOfTwoPoolsDiffer(t *testing.T) {
	a, b := newPortPool(), newPortPool()
	a.dir = t.TempDir()
	b.dir = a.dir
	seen := map[int]bool{}
	for _, p := range []*portPool{a, b} {
		ports := map[string]int{"given": 7}
		if err := p.pickAll(ports, "given", "x", "y", "z"); err != nil {
			t.Fatal(err)
		}
		if ports["given"] != 7 {
			t.Error("a given port was replaced")
		}
		for _, n := range []string{"x", "y", "z"} {
			if seen[ports[n]] {
				t.Errorf("port %d was handed out twice", ports[n])
			}
			seen[ports[n]] = true
		}
	}
	if len(a.held) != 3 || len(b.held) != 3 {
		t.Errorf("reservations are not held: %d and %d", len(a.held), len(b.held))
	}
}
