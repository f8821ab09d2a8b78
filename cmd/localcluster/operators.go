package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// operator runs kinds of jobs that Kueue manages. Its program and its shipped
// manifests are in a Go module, which the module in folder operators/NAME requires.
// All operators have a module of their own, since they need different versions of the
// same dependencies.
type operator struct {
	name      string   // of the component, its binary and its log, and in --kinds
	pkg       string   // of the program
	manifests []string // folders of its module, for kustomize

	namespace  string
	account    string   // service account of the shipped manifests
	frameworks []string // its kinds in Kueue's configuration
	needs      []string // operators whose kinds it creates

	// An operator reads the configuration file in its shipped ConfigMap, and then has
	// the name of the section that turns off its management of certificates, or has
	// flags instead. With certDir, the file also has to name the folder of the
	// certificate, which is otherwise in the folder of temporary files.
	certificates string
	certDir      bool
	flags        func(health, webhook int) []string

	rotation *rotation // nil for an operator that can use given certificates
}

// rotation describes an operator that always manages the certificate of its webhooks
// itself, as Kueue does with internalCertManagement.
type rotation struct {
	secret           string // of the certificate and its authority
	ca, organization string // of the authority
	folder           string // in which the operator waits for a certificate; the same in all instances
}

// operators are all operators. The index of one determines its ports.
var operators = []operator{
	{
		name: "jobset", pkg: "sigs.k8s.io/jobset", manifests: []string{"config/default"},
		namespace: "jobset-system", account: "jobset-controller-manager",
		frameworks:   []string{"jobset.x-k8s.io/jobset"},
		certificates: "internalCertManagement",
	},
	{
		// The other kinds that serve need no operator.
		name: "lws", pkg: "sigs.k8s.io/lws/cmd", manifests: []string{"config/default"},
		namespace: "lws-system", account: "lws-controller-manager",
		frameworks:   []string{"deployment", "leaderworkerset.x-k8s.io/leaderworkerset", "statefulset"},
		certificates: "internalCertManagement", certDir: true,
	},
	{
		name: "ray", pkg: "github.com/ray-project/kuberay/ray-operator", manifests: []string{"config/default"},
		namespace: "kuberay-system", account: "kuberay-operator",
		frameworks: []string{"ray.io/raycluster", "ray.io/rayjob", "ray.io/rayservice"},
		flags: func(health, _ int) []string { // its default manifests have no webhooks
			return []string{"--health-probe-bind-address=" + loopback(health), "--metrics-addr=0", "--enable-leader-election=false", "--qps=300", "--burst=600"}
		},
	},
	{
		name: "pytorch", pkg: "github.com/kubeflow/training-operator/cmd/training-operator.v1", manifests: []string{"manifests/overlays/standalone"},
		namespace: "kubeflow", account: "training-operator",
		frameworks: []string{"kubeflow.org/jaxjob", "kubeflow.org/paddlejob", "kubeflow.org/pytorchjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob"},
		flags: func(health, webhook int) []string {
			return []string{"--health-probe-bind-address=" + loopback(health), "--metrics-bind-address=0", "--webhook-server-port=" + strconv.Itoa(webhook), "--kube-api-qps=300", "--kube-api-burst=600"}
		},
		rotation: &rotation{
			secret: "training-operator-webhook-cert", ca: "training-operator-ca", organization: "training-operator",
			folder: "/tmp/k8s-webhook-server/serving-certs",
		},
	},
	{
		// The overlay of the manager would load JobSet's manifests from the internet.
		name: "trainer", pkg: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
		manifests: []string{"manifests/base/crds", "manifests/base/manager", "manifests/base/rbac", "manifests/base/runtimes", "manifests/base/webhook"},
		namespace: "kubeflow-system", account: "kubeflow-trainer-controller-manager",
		frameworks:   []string{"trainer.kubeflow.org/trainjob"},
		needs:        []string{"jobset"},
		certificates: "certManagement",
	},
}

func operatorNames() []string {
	var names []string
	for _, o := range operators {
		names = append(names, o.name)
	}
	return names
}

// selectOperators returns the indexes of the operators of these names, and of those
// that they need.
func selectOperators(names []string) ([]int, error) {
	selected := map[int]bool{}
	for _, name := range names {
		i := slices.IndexFunc(operators, func(o operator) bool { return o.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no kind %q; there are %s", name, strings.Join(operatorNames(), ", "))
		}
		needed, err := selectOperators(operators[i].needs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		selected[i] = true
		for _, n := range needed {
			selected[n] = true
		}
	}
	return slices.Sorted(maps.Keys(selected)), nil
}

func (o operator) stampPrefix() string { return ".localcluster-" + o.name + "-built-" }

// manifestFile returns the file with the operator's rendered manifests.
func (o operator) manifestFile(bin string) string {
	return filepath.Join(share(bin), "operators", o.name+".yaml")
}

func (o operator) tools() []tool { return []tool{{o.name, o.pkg}} }

// buildOperators fills bin with the operators of these names, each once per version.
func buildOperators(ctx context.Context, source, bin string, names []string) error {
	bin = absolute(bin)
	selected, err := selectOperators(names)
	if err != nil {
		return err
	}
	for _, i := range selected {
		if err := operators[i].build(ctx, filepath.Join(source, "operators", operators[i].name), bin); err != nil {
			return err
		}
	}
	return nil
}

func (o operator) build(ctx context.Context, module, bin string) error {
	sums, err := readSums(module)
	if err != nil {
		return err
	}
	const flags = "-s -w"
	set := buildSet{
		prefix: o.stampPrefix(), tools: o.tools(), files: []string{o.manifestFile(bin)}, sums: sums,
		flags: strings.Join(append([]string{flags, o.namespace}, o.manifests...), " "),
	}
	return set.build(bin, func() error {
		p := programs{module: module, tools: o.tools(), flags: []string{"-ldflags", flags}}
		if err := p.build(ctx, bin); err != nil {
			return err
		}
		return o.render(ctx, module, bin)
	})
}

// render writes the shipped manifests, in the operator's namespace.
func (o operator) render(ctx context.Context, module, bin string) error {
	shipped, err := goTool(ctx, module, "list", "-mod=readonly", "-f", "{{.Module.Dir}}", o.pkg)
	if err != nil {
		return fmt.Errorf("find module of %s: %w", o.name, err)
	}
	// kustomize takes other folders only by their path from this one, without links.
	dir, err := os.MkdirTemp("", "localcluster-")
	if err != nil {
		return fmt.Errorf("render %s: %w", o.name, err)
	}
	defer os.RemoveAll(dir)
	from, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("render %s: %w", o.name, err)
	}
	var resources []string
	for _, folder := range o.manifests {
		path, err := filepath.Rel(from, filepath.Join(shipped, folder))
		if err != nil {
			return fmt.Errorf("render %s: %w", o.name, err)
		}
		resources = append(resources, path)
	}
	text, err := yaml.Marshal(map[string]any{"namespace": o.namespace, "resources": resources})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("render %s: %w", o.name, err)
	}
	out, err := kustomize(ctx, bin, dir)
	if err != nil {
		return fmt.Errorf("manifests of %s: %w", o.name, err)
	}
	if err := os.MkdirAll(filepath.Dir(o.manifestFile(bin)), 0o755); err != nil {
		return fmt.Errorf("share folder: %w", err)
	}
	if err := os.WriteFile(o.manifestFile(bin), out, 0o644); err != nil {
		return fmt.Errorf("write manifests of %s: %w", o.name, err)
	}
	return nil
}

// checkOperators returns an error if one of these operators does not exist or is not
// built.
func checkOperators(bin string, names []string) error {
	selected, err := selectOperators(names)
	if err != nil {
		return err
	}
	for _, i := range selected {
		o := operators[i]
		stamps, _ := filepath.Glob(filepath.Join(bin, o.stampPrefix()+"*"))
		if len(stamps) == 0 || !allExist(bin, o.tools(), o.manifestFile(bin)) {
			return fmt.Errorf("%s has no %s; run: localcluster build --kinds %s --bin %s", bin, o.name, strings.Join(names, ","), bin)
		}
	}
	return nil
}
