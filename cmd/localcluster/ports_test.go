package main

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestCheckPortFreeNamesPortAndFlag(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	err = checkPortFree(port, "--console-port")
	if err == nil {
		t.Fatal("a port in use is called free")
	}
	for _, want := range []string{strconv.Itoa(port), "--console-port", "already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

func TestReservedPortsDiffer(t *testing.T) {
	dir := t.TempDir()
	seen := map[int]bool{}
	for range 2 {
		p, lock, err := reservePorts(dir, 7, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if p.api != 7 {
			t.Errorf("the API server's port is %d, want the requested one", p.api)
		}
		selected := []int{p.console, p.etcd, p.etcdPeer, p.controllerManager, p.scheduler, p.kwok, p.provider, p.kueueHealth, p.kueueMetrics, p.kueueWebhook, p.kueueVisibility, p.exporter, p.prometheus}
		for i := range operators {
			health, webhook := p.ofOperator(i)
			selected = append(selected, health, webhook)
		}
		for _, port := range selected {
			if port == 0 || seen[port] {
				t.Errorf("port %d is selected twice", port)
			}
			if offset := port - lowestPort - p.block*portBlock; offset < 0 || offset >= portBlock {
				t.Errorf("port %d is outside the block", port)
			}
			seen[port] = true
		}
		if _, err := lockFile(lock.Name(), false); !errors.Is(err, errLocked) {
			t.Errorf("the reservation is not locked: %v", err)
		}
	}
}
