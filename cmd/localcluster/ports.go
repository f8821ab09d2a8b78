package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ports are selected below the range that the kernel uses for outgoing
// connections. It could otherwise use the port of a stopped component, even for
// a client that tries to connect to that very port.
const (
	lowestPort  = 20000
	highestPort = 32767
	portBlock   = 32 // ports per instance

	firstOperatorPort = 14 // in the block; each operator has two
)

// ports are the ports of one instance, on 127.0.0.1.
type ports struct {
	api, console, etcd, etcdPeer, controllerManager, scheduler, kwok, provider int
	kueueHealth, kueueMetrics, kueueWebhook, kueueVisibility                   int
	exporter, prometheus                                                       int
	operators                                                                  int // the first of them

	block int // index of the reserved block, which no other instance has
}

// reservePorts selects free ports. No other instance on this machine selects
// from the same block while the returned lock is open.
func reservePorts(dir string, api, console int) (ports, *os.File, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return ports{}, nil, fmt.Errorf("reserve ports: %w", err)
	}
	_ = os.Chmod(dir, 0o1777) // other users reserve here too; fails for a folder that another user created
	highest := min(highestPort, firstEphemeralPort()-1)
	if highest < lowestPort+1000 {
		highest = highestPort
	}
	for range 200 {
		base := lowestPort + portBlock*rand.IntN((highest-lowestPort)/portBlock)
		lock, err := lockFile(filepath.Join(dir, strconv.Itoa(base)), false)
		if err != nil {
			continue
		}
		if blockFree(base) {
			return ports{
				api: cmp.Or(api, base), console: cmp.Or(console, base+1), etcd: base + 2, etcdPeer: base + 3,
				controllerManager: base + 4, scheduler: base + 5, kwok: base + 6, provider: base + 7,
				kueueHealth: base + 8, kueueMetrics: base + 9, kueueWebhook: base + 10, kueueVisibility: base + 11,
				exporter: base + 12, prometheus: base + 13,
				operators: base + firstOperatorPort,
				block:     (base - lowestPort) / portBlock,
			}, lock, nil
		}
		lock.Close()
	}
	return ports{}, nil, errors.New("no free ports found on 127.0.0.1")
}

// ofOperator returns the ports of the operator with that index in the table.
func (p ports) ofOperator(index int) (health, webhook int) {
	return p.operators + 2*index, p.operators + 2*index + 1
}

// portLocks is the folder of lock files, which all users of this machine share.
func portLocks() string { return filepath.Join(os.TempDir(), "localcluster-ports") }

func blockFree(base int) bool {
	for port := base; port < base+portBlock; port++ {
		if checkPortFree(port, "") != nil {
			return false
		}
	}
	return true
}

// checkPortFree returns an error that names the port and its flag when the port
// cannot be used.
func checkPortFree(port int, flagName string) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("%s %d: use a port from 0 to 65535", flagName, port)
	}
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		if sys, ok := errors.AsType[*os.SyscallError](err); ok {
			err = sys.Err // without the address, which the message has already
		}
		return fmt.Errorf("port %d on 127.0.0.1 (%s) cannot be used: %w; stop what listens there or choose another port", port, flagName, err)
	}
	return l.Close()
}

// firstEphemeralPort returns the first port that the kernel uses for outgoing
// connections.
func firstEphemeralPort() int {
	b, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	first, _, _ := strings.Cut(string(b), "\t")
	n, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return highestPort + 1
	}
	return n
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func httpURL(port int) string { return "http://" + loopback(port) }

func httpsURL(port int) string { return "https://" + loopback(port) }
