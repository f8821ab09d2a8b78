package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nodeInterface is the name of the node's end of its link.
const nodeInterface = "eth0"

// serviceIP is the address of Service default/kubernetes: the first of
// --service-cluster-ip-range.
const serviceIP = "10.96.0.1"

// nodeNetwork is the link between this machine and the real node, and the network
// of its pods. No other instance has the index.
//
//	this machine: host() ── link ── node(): real node ── bridge ── pods()
type nodeNetwork struct{ index int }

func (n nodeNetwork) link() string { return fmt.Sprintf("localnode%d", n.index) }
func (n nodeNetwork) host() string { return n.linkAddress(1) }
func (n nodeNetwork) node() string { return n.linkAddress(2) }

// pods returns the network of the pods, in CIDR notation.
func (n nodeNetwork) pods() string { return fmt.Sprintf("10.%d.%d.0/24", 244+n.index/256, n.index%256) }

// linkAddress returns an address of the link's network, which has four.
func (n nodeNetwork) linkAddress(i int) string {
	return fmt.Sprintf("10.248.%d.%d", n.index/64, n.index%64*4+i)
}

// connect creates the link to the network namespace of a process, and the routes
// to its pods. The kernel removes both with the namespace.
func (n nodeNetwork) connect(pid int) error {
	n.disconnect()
	return ip(
		"link add "+n.link()+" type veth peer name "+nodeInterface+" netns "+strconv.Itoa(pid),
		"address add "+n.host()+"/30 dev "+n.link(),
		"link set "+n.link()+" up",
		"route add "+n.pods()+" via "+n.node()+" dev "+n.link(),
	)
}

// disconnect removes the link now: the kernel does it later than the process ends.
func (n nodeNetwork) disconnect() { _ = ip("link delete " + n.link()) }

// configureNode configures the link in the node's network namespace.
func (n nodeNetwork) configureNode() error {
	return ip(
		"link set lo up",
		"address add "+n.node()+"/30 dev "+nodeInterface,
		"link set "+nodeInterface+" up",
		"route add default via "+n.host(),
	)
}

// ip runs commands of iproute2.
func ip(commands ...string) error {
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// forward lets the node and its pods reach a server of this instance, which
// listens on loopback only, at the same port of host(), until ctx ends.
func (n nodeNetwork) forward(ctx context.Context, port int) error {
	// The address exists as long as the link does; the listener outlives both.
	freebind := func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_IP, syscall.IP_FREEBIND, 1) }), err)
	}
	listener, err := (&net.ListenConfig{Control: freebind}).Listen(ctx, "tcp", net.JoinHostPort(n.host(), strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("forward port %d: %w", port, err)
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go pipe(from, port)
		}
	}()
	return nil
}

// pipe copies between a connection and a port on loopback until both are closed.
func pipe(from net.Conn, port int) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", loopback(port), 5*time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
		close(done)
	}()
	_, _ = io.Copy(from, to)
	_ = from.(*net.TCPConn).CloseWrite()
	<-done
}
