package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// quietFor is how long etcd has to contain nothing new until a reset ends:
	// controllers that were about to create an object have done so by then.
	quietFor = 400 * time.Millisecond
	// pageSize keeps answers below the 2 MiB limit of gRPC.
	pageSize = 200
)

// volatile are prefixes of keys that components keep writing. A reset leaves
// them as they are.
var volatile = []string{
	"/registry/masterleases/", "/registry/leases/", "/registry/events/",
	"/registry/apiregistration.k8s.io/apiservices/",
}

// store is the content of etcd: values by key.
type store map[string][]byte

// connectStore returns a client of this instance's etcd.
func (s *supervisor) connectStore(port int) (*clientv3.Client, error) {
	info := transport.TLSInfo{CertFile: s.layout.pki("etcd-client.crt"), KeyFile: s.layout.pki("etcd-client.key"), TrustedCAFile: s.layout.pki("etcd-ca.crt")}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read credentials of etcd: %w", err)
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{"https://" + loopback(port)}, TLS: config, DialTimeout: 5 * time.Second})
}

// readStore returns all that the API server keeps in etcd, without the volatile
// keys.
func readStore(ctx context.Context, etcd *clientv3.Client) (store, error) {
	content := store{}
	const end = "/registry0" // the first key after all that begin with /registry/
	for from := "/registry/"; ; {
		page, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return nil, fmt.Errorf("read etcd: %w", err)
		}
		for _, kv := range page.Kvs {
			if !isVolatile(string(kv.Key)) {
				content[string(kv.Key)] = kv.Value
			}
		}
		if !page.More {
			return content, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

func isVolatile(key string) bool {
	for _, prefix := range volatile {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// writeStore changes etcd until it contains want. It reports whether it deleted
// or added a key: a key that only differs may be one that a component updates.
func writeStore(ctx context.Context, etcd *clientv3.Client, want store) (changed bool, err error) {
	have, err := readStore(ctx, etcd)
	if err != nil {
		return false, err
	}
	for key, value := range want {
		if old, ok := have[key]; ok && bytes.Equal(old, value) {
			continue
		} else if !ok {
			changed = true
		}
		if _, err := etcd.Put(ctx, key, string(value)); err != nil {
			return changed, fmt.Errorf("write etcd: %w", err)
		}
	}
	for key := range have {
		if _, ok := want[key]; ok {
			continue
		}
		changed = true
		if _, err := etcd.Delete(ctx, key); err != nil {
			return changed, fmt.Errorf("write etcd: %w", err)
		}
	}
	return changed, nil
}

// reset returns all objects to the state in which they were when the instance
// became ready, and restarts Kueue. It writes etcd directly: no finalizer, no
// admission policy and no namespace controller delays it, and every informer sees
// the changes as watch events. The other components keep running.
func (s *supervisor) reset(ctx context.Context) (string, error) {
	if s.baseline == nil {
		return "", errors.New("the instance was not started with --resettable")
	}
	begin := time.Now()
	for _, c := range s.list() {
		if c.name == kueueName {
			continue
		}
		if _, err := s.startOne(ctx, c.name); err != nil {
			return "", err
		}
	}
	c := s.kueue.comp
	c.op.Lock()
	defer c.op.Unlock()
	c.stop(c.grace)
	for quiet := time.Now(); time.Since(quiet) < quietFor; time.Sleep(quietFor / 4) {
		changed, err := writeStore(ctx, s.etcd, s.baseline)
		if err != nil {
			return "", err
		}
		if changed {
			quiet = time.Now()
		}
		if time.Since(begin) > startLimit {
			return "", errors.New("components keep writing objects")
		}
	}
	pod, err := s.kueue.pod(ctx)
	if err != nil {
		return "", err
	}
	s.kueue.template = pod.template // so that follow does not restart Kueue for it
	if err := s.kueue.prepare(ctx); err != nil {
		return "", err
	}
	if err := c.start(ctx, s.spawner, s.onExit); err != nil {
		return "", fmt.Errorf("%w; the end of its log:\n%s", err, logTail(c.spec.log))
	}
	if err := s.kueue.waitWebhooks(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("reset after %.1f s", time.Since(begin).Seconds()), nil
}
