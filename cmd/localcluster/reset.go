package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// quietFor is how long etcd must not change until a reset ends: controllers
	// that were about to create an object have created it by then.
	quietFor = 400 * time.Millisecond
	// pageSize keeps responses below the 2 MiB limit of gRPC.
	pageSize = 200
)

// volatile has the prefixes of keys that components write all the time. A reset
// does not change them.
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
	return clientv3.New(clientv3.Config{Endpoints: []string{httpsURL(port)}, TLS: config, DialTimeout: 5 * time.Second})
}

// readStore returns the API server's content of etcd, without the volatile keys.
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
	return slices.ContainsFunc(volatile, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
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

// uidPattern matches the UID of a stored object, which is its first one.
var uidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// policiesReplaced reports whether an admission policy of want is missing or was
// created again.
func policiesReplaced(have, want store) bool {
	for key, value := range want {
		if strings.HasPrefix(key, "/registry/validatingadmissionpolicies/") && !bytes.Equal(uidPattern.Find(have[key]), uidPattern.Find(value)) {
			return true
		}
	}
	return false
}

// stopControlPlane stops the API server and all that depends on it, the latter
// first. A reset starts them again.
func (s *supervisor) stopControlPlane(components []*component) error {
	for _, c := range slices.Backward(components) {
		if c.name == etcdName || c.name == providerName || c.name == kueueName {
			continue
		}
		if _, err := s.stopByName(c.name); err != nil {
			return err
		}
	}
	return nil
}

// reset returns all objects to their state when the instance became ready, and
// restarts Kueue. It writes to etcd directly: no finalizer, admission policy or
// namespace controller delays it, and every informer receives the changes as
// watch events. The other components keep running.
func (s *supervisor) reset() (string, error) {
	if s.baseline == nil {
		return "", errors.New("the instance was not started with --resettable")
	}
	begin := time.Now()
	s.mu.Lock()
	components := slices.Clone(s.components)
	s.mu.Unlock()
	have, err := readStore(s.ctx, s.etcd)
	if err != nil {
		return "", err
	}
	// Once no admission policy has ConfigMaps as parameters, the API server
	// (1.36) never reads them again, also not for a policy created later.
	if policiesReplaced(have, s.baseline) {
		if _, err := s.stopByName(kueueName); err != nil {
			return "", err
		}
		if err := s.stopControlPlane(components); err != nil {
			return "", err
		}
	}
	for _, c := range components {
		if c.name == kueueName {
			continue
		}
		if _, err := s.startByName(c.name); err != nil {
			return "", err
		}
	}
	c := s.kueue.comp
	c.op.Lock()
	defer c.op.Unlock()
	s.stop(c)
	for quiet := time.Now(); time.Since(quiet) < quietFor; time.Sleep(quietFor / 4) {
		changed, err := writeStore(s.ctx, s.etcd, s.baseline)
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
	api, err := newAPIClient(s.layout.kubeconfig())
	if err != nil {
		return "", err
	}
	// Kueue exits when discovery does not have its kinds yet.
	if err := api.waitCRDs(s.ctx, s.kueue.objects.crds); err != nil {
		return "", err
	}
	if err := s.kueue.prepare(s.ctx); err != nil {
		return "", err
	}
	if err := s.start(s.ctx, c); err != nil {
		return "", s.withLog(c, err)
	}
	if err := s.kueue.waitWebhooks(s.ctx); err != nil {
		return "", err
	}
	if err := s.kueue.waitVisibility(s.ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("reset after %.1f s", time.Since(begin).Seconds()), nil
}
