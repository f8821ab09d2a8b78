package clustertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	poolVariable = "KUOTA_TEST_POOL"
	usedMark     = "used" // in a cluster's folder: the next test binary resets it first
	// poolLimit is how long a test binary waits for a cluster: there can be more
	// binaries than clusters, and two of others before it.
	poolLimit = 45 * time.Minute
)

// Pool is a set of clusters that test binaries share. Only one binary uses a
// cluster at a time. Before the next binary uses a cluster, the cluster is reset to
// the objects that it had when it became ready, which is much faster than a start.
//
//	dir/0, dir/1, ...        the clusters
//	dir/0/lock               locked by the test binary that uses the cluster
type Pool struct {
	dir   string
	stops []func()
}

// NewPool returns a pool without clusters.
func NewPool() (*Pool, error) {
	dir, err := os.MkdirTemp("", "kuota-test-pool-")
	return &Pool{dir: dir}, err
}

// Env returns the environment variable, as name=value, that passes the pool to a
// test binary.
func (p *Pool) Env() string { return poolVariable + "=" + p.dir }

// Start adds a cluster and waits until it is ready. The cluster also stops when this
// process ends in any way. Start is not safe for concurrent use.
func (p *Pool) Start() error {
	dir := filepath.Join(p.dir, strconv.Itoa(len(p.stops)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	stop, err := start(dir, Options{})
	if err != nil {
		return err
	}
	p.stops = append(p.stops, stop)
	return nil
}

// Close stops all clusters and deletes the pool's folder.
func (p *Pool) Close() {
	for _, stop := range p.stops {
		stop()
	}
	os.RemoveAll(p.dir)
}

// acquireFromPool waits for a cluster of the pool that no other test binary uses,
// and resets it if one did.
func acquireFromPool(pool string) (dir string, release func(), err error) {
	for deadline := time.Now().Add(poolLimit); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		ready, _ := filepath.Glob(filepath.Join(pool, "*", "cluster", "ready"))
		for _, file := range ready {
			dir := filepath.Dir(filepath.Dir(file))
			lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return "", nil, err
			}
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
				lock.Close()
				continue
			}
			if err := resetUsed(dir); err != nil {
				lock.Close()
				return "", nil, err
			}
			return dir, func() { lock.Close() }, nil
		}
	}
	return "", nil, errors.New("no cluster of the pool became free")
}

// resetUsed resets a cluster unless the caller is the first to use it.
func resetUsed(dir string) error {
	mark := filepath.Join(dir, usedMark)
	if _, err := os.Stat(mark); err != nil {
		return os.WriteFile(mark, nil, 0o600)
	}
	out, err := exec.Command(filepath.Join(Root(), ".local", "bin", "localcluster"), "reset", "--dir", filepath.Join(dir, "cluster")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("reset the cluster: %w\n%s", err, out)
	}
	return nil
}
