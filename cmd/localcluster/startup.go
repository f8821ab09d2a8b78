package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

// startAll starts all components in the order of their dependencies, and marks
// the instance as ready.
func (s *supervisor) startAll(ctx context.Context, o upOptions, p ports, begin time.Time) error {
	bin := absolute(o.bin)
	network := nodeNetwork{index: p.block}
	ca, err := writeCredentials(s.layout, p.api, network.host(), serviceIP)
	if err != nil {
		return err
	}
	if o.realNode {
		if err := writeNodeCredentials(s.layout, ca, network, p.api); err != nil {
			return err
		}
	}
	s.say("starting the API server")
	err = together(ctx,
		func(ctx context.Context) error { return s.startProvider(ctx, o, p) },
		func(ctx context.Context) error { return s.run(ctx, etcdComponent(s.layout, bin, p)) },
		func(ctx context.Context) error { return s.startAPIServer(ctx, o, bin, p) },
	)
	if err != nil {
		return err
	}
	api, err := newAPIClient(s.layout.kubeconfig())
	if err != nil {
		return err
	}
	s.say("starting controllers, Kueue and nodes")
	units, err := newOperatorUnits(s, api, ca, bin, p, o.kinds)
	if err != nil {
		return err
	}
	kueue, err := newKueueUnit(s, api, ca, bin, p, units.frameworks())
	if err != nil {
		return err
	}
	// Before Kueue and the operators start: they look for missing kinds again only after
	// increasing delays.
	if err := units.define(ctx); err != nil {
		return err
	}
	kwok, err := kwokComponent(s.layout, bin, p, o.realNode)
	if err != nil {
		return err
	}
	err = together(ctx,
		kueue.install,
		units.install,
		func(ctx context.Context) error { return applyCRDs(ctx, api, o.crds) },
		func(ctx context.Context) error { return applyRBAC(ctx, api, o.rbac, units.frameworks()) },
		func(ctx context.Context) error { return s.run(ctx, controllerManagerComponent(s.layout, bin, p)) },
		func(ctx context.Context) error { return s.run(ctx, schedulerComponent(s.layout, bin, p)) },
		func(ctx context.Context) error { return s.startNodes(ctx, api, kwok, o.nodes) },
		func(ctx context.Context) error { return s.startRealNode(ctx, o, api, network, p) },
	)
	if err != nil {
		return err
	}
	if err := kueue.waitDeployment(ctx); err != nil {
		return err
	}
	s.kueue = kueue
	go kueue.follow(ctx)
	if err := waitAccepted(ctx, api, o.crds); err != nil {
		return err
	}
	return s.startProduct(ctx, o, api, p, begin)
}

// probes are objects of Kuota that every cluster accepts.
const probes = `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: probe}
spec: {quota: [{instanceType: probe, instances: 1}]}
---
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec: {}
`

// waitAccepted waits until the API server accepts Kuota's objects, if their definitions
// are in the folder crds. It answers 503 until it has read the schema that the mutating
// admission policies of Kuota need, which is seconds after discovery has the kinds.
func waitAccepted(ctx context.Context, api apiClient, crds string) error {
	defined, err := readManifests(crds)
	if err != nil {
		return err
	}
	objs, err := parseManifest([]byte(probes))
	if err != nil {
		return err
	}
	objs = slices.DeleteFunc(objs, func(u *unstructured.Unstructured) bool {
		return !slices.ContainsFunc(defined, func(crd *unstructured.Unstructured) bool {
			kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
			return kind == u.GetKind()
		})
	})
	return waitFor(ctx, startLimit, func(ctx context.Context) error {
		for _, u := range objs {
			if err := api.Create(ctx, u.DeepCopy(), fieldManager, client.DryRunAll); err != nil {
				return fmt.Errorf("try %s: %w", title(u), err)
			}
		}
		return nil
	})
}

// startProduct starts the console, and applies the samples.
func (s *supervisor) startProduct(ctx context.Context, o upOptions, api apiClient, p ports, begin time.Time) error {
	url, issuer := "", ""
	simulated := o.simulated()
	if o.users != "" {
		issuer = httpURL(p.provider)
	}
	if o.console != "" {
		s.say("starting the console")
		console := consoleComponent(s.layout, o.console, p.console, issuer)
		if simulated == nil {
			console.env = append(console.env, "KUOTA_PROMETHEUS_URL="+httpURL(p.prometheus), "KUOTA_IDLE_AFTER=1m")
		}
		if err := s.run(ctx, console); err != nil {
			return err
		}
		url = httpURL(p.console)
		if err := os.WriteFile(s.layout.url(), []byte(url+"\n"), 0o644); err != nil {
			return fmt.Errorf("write the console's address: %w", err)
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
			go load.run(ctx, api, s.say)
		}
	}
	if o.resettable {
		var err error
		if s.etcd, err = s.connectStore(p.etcd); err != nil {
			return err
		}
		if s.baseline, err = readStore(ctx, s.etcd); err != nil {
			return err
		}
	}
	if err := s.announce(o, url, issuer, simulated, p, begin); err != nil {
		return err
	}
	if simulated == nil {
		go s.startPrometheus(ctx, api, p, o.still)
	}
	return nil
}

// startProvider starts the sign-in provider if there are users.
func (s *supervisor) startProvider(ctx context.Context, o upOptions, p ports) error {
	if o.users == "" {
		return nil
	}
	if err := writeSignIn(s.layout, o.users, httpURL(p.provider)); err != nil {
		return err
	}
	c, err := providerComponent(s.layout, p, o.tokenLife)
	if err != nil {
		return err
	}
	return s.run(ctx, c)
}

func (s *supervisor) startAPIServer(ctx context.Context, o upOptions, bin string, p ports) error {
	policy := auditPolicy
	if o.auditPolicy != "" {
		var err error
		if policy, err = os.ReadFile(o.auditPolicy); err != nil {
			return fmt.Errorf("read audit policy: %w", err)
		}
	}
	if err := os.WriteFile(s.layout.auditPolicy(), policy, 0o644); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	c := apiServerComponent(s.layout, bin, p)
	if o.auditWebhook != "" {
		c.args = append(c.args, "--audit-webhook-config-file="+absolute(o.auditWebhook),
			"--audit-webhook-batch-max-wait=1s", "--audit-webhook-initial-backoff=1s") // by default 30 s and 10 s
	}
	if o.realNode {
		c.args = append(c.args, nodeServerFlags(s.layout)...)
	}
	return s.run(ctx, c)
}

// startNodes creates the nodes, starts KWOK, and waits until pods can be placed
// on every node.
func (s *supervisor) startNodes(ctx context.Context, api apiClient, kwok *component, file string) error {
	nodes, err := parseManifest([]byte(kueueHost))
	if err != nil {
		return err
	}
	if file != "" {
		more, err := readManifest(file)
		if err != nil {
			return err
		}
		if _, others := split(more, "Node"); len(others) > 0 {
			return fmt.Errorf("%s: %s is not a Node", file, title(others[0]))
		}
		nodes = append(nodes, more...)
	}
	for _, n := range nodes {
		simulate(n)
	}
	// Created rather than applied: only a POST of a Node sets its status.
	if err := api.create(ctx, nodes...); err != nil {
		return err
	}
	if err := s.run(ctx, kwok); err != nil {
		return err
	}
	return waitFor(ctx, time.Minute, func(ctx context.Context) error {
		var list corev1.NodeList
		if err := api.List(ctx, &list); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if n := &list.Items[i]; n.Name != nodeName && nodeReady(n) {
				ready++
			}
		}
		if ready < len(nodes) {
			return fmt.Errorf("%d of %d nodes are ready", ready, len(nodes))
		}
		return nil
	})
}

// nodeReady reports whether the scheduler places pods on the node. The taint
// remains for a moment after the node has become ready.
func nodeReady(n *corev1.Node) bool {
	tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	return !tainted && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// together runs steps concurrently and returns the first error.
func together(ctx context.Context, steps ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, step := range steps {
		group.Go(func() error { return step(ctx) })
	}
	return group.Wait()
}

// announce prints the addresses and users, and writes the ready file.
func (s *supervisor) announce(o upOptions, url, issuer string, simulated error, p ports, begin time.Time) error {
	lines := []string{fmt.Sprintf("ready after %.1f s", time.Since(begin).Seconds())}
	if url != "" {
		lines = append(lines, "  console     "+url)
	}
	if issuer != "" {
		users, err := provider.ReadUsers(s.layout.signin("users.yaml"))
		if err != nil {
			return err
		}
		lines = append(lines, "  provider    "+issuer)
		lines = append(lines, userLines(users)...)
	}
	switch {
	case simulated == nil:
		line := "  prometheus  " + httpURL(p.prometheus) + ", in a moment, with simulated hardware utilization"
		if path, _ := findPrometheus(); path == "" {
			line += "; apt gets it first, and the log of localcluster says if it cannot"
		}
		lines = append(lines, line)
	case !errors.Is(simulated, errNoSamples):
		lines = append(lines, fmt.Sprintf("  prometheus  none, so that pages show no hardware utilization: %v", simulated))
	}
	lines = append(lines,
		"  kubeconfig  "+s.layout.kubeconfig(),
		"  kubectl     "+filepath.Join(absolute(o.bin), "kubectl")+" --kubeconfig "+s.layout.kubeconfig(),
		"  logs        "+s.layout.path("logs"))
	s.say("%s", strings.Join(lines, "\n"))
	if err := os.WriteFile(s.layout.ready(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

// userLines returns one line for each user who can sign in.
func userLines(users []provider.User) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, u := range users {
		if !u.Disabled {
			fmt.Fprintf(w, "    sign in as %s\tpassword %s\t%s\n", u.Name, u.Password, u.About)
		}
	}
	_ = w.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// applySamples applies the policy and the teams, and once they are ready the
// members and, if wanted, the tasks. Each file may be missing.
func applySamples(ctx context.Context, api apiClient, dir string, withTasks bool) error {
	files := map[string][]*unstructured.Unstructured{}
	for _, name := range []string{"policy", "teams", "members", "tasks"} {
		objs, err := readManifest(filepath.Join(dir, name+".yaml"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		files[name] = objs
	}
	// The API server refuses objects that a MutatingAdmissionPolicy matches until
	// it has read the schema of their new definitions.
	for _, name := range []string{"policy", "teams"} {
		if err := retry(ctx, func(ctx context.Context) error { return api.apply(ctx, files[name]...) }, isTransient); err != nil {
			return err
		}
	}
	for _, u := range append(files["policy"], files["teams"]...) { // Kueue ignores a task whose priority class does not exist yet
		if kind := u.GetKind(); kind == "ComputeAllocation" || kind == "ClusterPolicy" {
			if err := waitCondition(ctx, api, 30*time.Second, u, "Ready"); err != nil {
				return err
			}
		}
	}
	// A member's namespace may be of a team that is not in teams.yaml and that
	// another client creates now.
	for _, u := range files["members"] {
		if err := retry(ctx, func(ctx context.Context) error { return api.apply(ctx, u) }, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	if !withTasks {
		return nil
	}
	// Kueue's webhooks do not answer while Kueue restarts for the policy. The
	// tasks are created in the order of the file, each once Kueue has decided about the one
	// before: otherwise chance decides which of two that compete starts.
	for _, u := range files["tasks"] {
		if err := retry(ctx, func(ctx context.Context) error { return api.create(ctx, u) }, isTransient); err != nil {
			return err
		}
		if err := waitDecided(ctx, api, u); err != nil {
			return err
		}
	}
	return nil
}

// waitDecided waits until Kueue has decided whether a task starts.
func waitDecided(ctx context.Context, api apiClient, task *unstructured.Unstructured) error {
	mapping, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"})
	if err != nil {
		return err
	}
	return waitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		var workloads unstructured.UnstructuredList
		workloads.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := api.List(ctx, &workloads, client.InNamespace(task.GetNamespace())); err != nil {
			return err
		}
		for i := range workloads.Items {
			owners := workloads.Items[i].GetOwnerReferences()
			conditions, _, _ := unstructured.NestedSlice(workloads.Items[i].Object, "status", "conditions")
			if len(owners) > 0 && owners[0].Name == task.GetName() && len(conditions) > 0 {
				return nil
			}
		}
		return fmt.Errorf("Kueue has not decided about %s", title(task))
	})
}

// waitCondition waits until the object has a condition of this type with status True.
func waitCondition(ctx context.Context, api apiClient, limit time.Duration, u *unstructured.Unstructured, kind string) error {
	return waitFor(ctx, limit, func(ctx context.Context) error {
		current, err := api.read(ctx, u)
		if err != nil {
			return err
		}
		if !hasCondition(current, kind) {
			conditions, _, _ := unstructured.NestedSlice(current.Object, "status", "conditions")
			return fmt.Errorf("%s is not %s: %v", title(u), kind, conditions)
		}
		return nil
	})
}
