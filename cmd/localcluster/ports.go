package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portRange is where free ports are picked: below the range from which the
// kernel takes ports for outgoing connections. A port from inside it could be
// taken while a component is stopped on purpose, even by a client that tries
// to connect to that very port.
const (
	lowestPort   = 20000
	highestPort  = 32767
	reservations = "localcluster-ports"
)

// portPool hands out ports that no other instance on this machine is handed
// as long as this process lives.
type portPool struct {
	dir  string
	held []*os.File
}

func newPortPool() *portPool {
	return &portPool{dir: filepath.Join(os.TempDir(), reservations)}
}

// pick returns a free port on loopback and reserves it.
func (p *portPool) pick() (int, error) {
	if err := os.MkdirAll(p.dir, 0o777); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	_ = os.Chmod(p.dir, 0o1777) // other users reserve here too; fails harmlessly when they made it
	top := min(highestPort, ephemeralStart()-1)
	if top < lowestPort+1000 {
		top = highestPort
	}
	for range 500 {
		port := lowestPort + rand.IntN(top-lowestPort)
		f, err := lockFile(filepath.Join(p.dir, strconv.Itoa(port)), false)
		if err != nil {
			continue
		}
		if checkPortFree(port, "") != nil {
			f.Close()
			continue
		}
		p.held = append(p.held, f)
		return port, nil
	}
	return 0, errors.New("no free port found on 127.0.0.1")
}

// pickAll fills every name with a port of its own.
func (p *portPool) pickAll(into map[string]int, names ...string) error {
	for _, n := range names {
		if into[n] != 0 {
			continue
		}
		port, err := p.pick()
		if err != nil {
			return err
		}
		into[n] = port
	}
	return nil
}

// checkPortFree says which port is taken and by which flag it was asked for.
func checkPortFree(port int, flagName string) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("port %d (%s) does not exist", port, flagName)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d on 127.0.0.1 (%s) cannot be used: %w; stop what listens there or choose another port",
			port, flagName, cause(err))
	}
	return l.Close()
}

// cause strips the address that net errors repeat.
func cause(err error) error {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err
	}
	return err
}

// ephemeralStart is the first port that the kernel gives to outgoing connections.
func ephemeralStart() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return highestPort + 1
	}
	fields := strings.Fields(string(b))
	if len(fields) == 0 {
		return highestPort + 1
	}
	n, err := strconv.Atoi(fields[0])
	if err != nil {
		return highestPort + 1
	}
	return n
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
