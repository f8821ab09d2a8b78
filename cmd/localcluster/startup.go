package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// startAll brings everything up in the order of who needs whom: the store, the
// API server and beside them the provider, then all that only needs the API server at the same time, then
// the console, then the samples.
func (s *supervisor) startAll(ctx context.Context, o upOptions, begin time.Time) error {
	bin := absolute(o.bin)
	ports := map[string]int{"api": o.apiPort, "console": o.consolePort}
	if err := s.ports.pickAll(ports, "api", "console", "etcd", "etcd-peer", "controller-manager", "scheduler",
		"kueue-health", "kueue-metrics", "kueue-webhook", "kueue-visibility", "kwok", "provider"); err != nil {
		return err
	}
	if err := makeCredentials(s.layout, ports["api"]); err != nil {
		return err
	}
	s.say("starting the API server")
	err := together(ctx,
		func(ctx context.Context) error { return s.startProvider(ctx, o, ports["provider"]) },
		func(ctx context.Context) error { return s.startAPIServer(ctx, bin, ports) },
	)
	if err != nil {
		return err
	}
	api, err := newAPIClient(s.layout.kubeconfig())
	if err != nil {
		return err
	}
	s.say("starting controllers, Kueue and nodes")
	kueue, err := newKueueUnit(s, api, bin, ports)
	if err != nil {
		return err
	}
	kwok, err := kwokComponent(s.layout, bin, ports)
	if err != nil {
		return err
	}
	err = together(ctx,
		func(ctx context.Context) error { return applyRBAC(ctx, api, o.rbac) },
		func(ctx context.Context) error { return s.run(ctx, controllerManagerComponent(s.layout, bin, ports)) },
		func(ctx context.Context) error { return s.run(ctx, schedulerComponent(s.layout, bin, ports)) },
		kueue.install,
		func(ctx context.Context) error { return applyExtraCRDs(ctx, api, o.crds) },
		func(ctx context.Context) error { return s.startNodes(ctx, api, kwok, o.nodes) },
	)
	if err != nil {
		return err
	}
	if err := kueue.waitDeployment(ctx); err != nil {
		return err
	}
	s.kueue = kueue
	go kueue.follow(ctx)

	url, issuer := "", ""
	if o.users != "" {
		issuer = issuerURL(ports["provider"])
	}
	if o.console != "" {
		if url, err = s.startConsole(ctx, o.console, ports["console"], issuer); err != nil {
			return err
		}
	}
	if o.samples != "" {
		s.say("applying samples")
		load, err := o.load()
		if err != nil {
			return err
		}
		if err := applySamples(ctx, api, o.samples, load == nil); err != nil {
			return err
		}
		if load != nil {
			go load.play(ctx, api, s.say)
		}
	}
	if o.resettable {
		if s.etcd, err = s.connectStore(ports["etcd"]); err != nil {
			return err
		}
		if s.baseline, err = readStore(ctx, s.etcd); err != nil {
			return err
		}
	}
	return s.announce(o, url, issuer, begin)
}

func (s *supervisor) startAPIServer(ctx context.Context, bin string, ports map[string]int) error {
	if err := writeAuditPolicy(s.layout); err != nil {
		return err
	}
	if err := s.run(ctx, etcdComponent(s.layout, bin, ports)); err != nil {
		return err
	}
	return s.run(ctx, apiServerComponent(s.layout, bin, ports))
}

// together runs steps at the same time and returns the first error.
func together(ctx context.Context, steps ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(steps))
	for _, step := range steps {
		go func() { errs <- step(ctx) }()
	}
	var first error
	for range steps {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

func applyExtraCRDs(ctx context.Context, api *apiClient, dir string) error {
	if dir == "" {
		return nil
	}
	objs, err := readManifests(dir)
	if err != nil {
		return err
	}
	crds := objs[:0]
	for _, u := range objs {
		if u.GetKind() == "CustomResourceDefinition" {
			crds = append(crds, u)
		}
	}
	return api.applyCRDs(ctx, crds)
}

func (s *supervisor) startNodes(ctx context.Context, api *apiClient, kwok *component, file string) error {
	objs, err := parseManifest([]byte(kueueHost))
	if err != nil {
		return err
	}
	if file != "" {
		more, err := readNodes(file)
		if err != nil {
			return err
		}
		objs = append(objs, more...)
	}
	if err := createNodes(ctx, api, objs); err != nil {
		return err
	}
	if err := s.run(ctx, kwok); err != nil {
		return err
	}
	if err := waitNodes(ctx, api, len(objs)); err != nil {
		return err
	}
	return nil
}

func (s *supervisor) startConsole(ctx context.Context, binary string, port int, issuer string) (string, error) {
	s.say("starting the console")
	c, err := consoleComponent(s.layout, binary, port, issuer)
	if err != nil {
		return "", err
	}
	if err := s.run(ctx, c); err != nil {
		return "", err
	}
	url := consoleURL(port)
	if err := os.WriteFile(s.layout.url(), []byte(url+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("write the console's address: %w", err)
	}
	return url, nil
}
