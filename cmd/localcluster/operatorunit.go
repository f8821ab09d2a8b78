package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// operatorConfigKey is the key of the configuration file in operators' ConfigMaps.
const operatorConfigKey = "controller_manager_config.yaml"

// operatorUnit is the process of an operator and its objects in the cluster.
type operatorUnit struct {
	operator
	sup             *supervisor
	api             apiClient
	ca              authority // of the webhooks' certificate
	health, webhook int       // ports
	objects         operatorObjects
	comp            *component
}

// operatorObjects are an operator's shipped manifests.
type operatorObjects struct {
	shippedObjects
	instances []*unstructured.Unstructured // of its kinds, written last
	config    string                       // of its ConfigMap; empty without one
	hosts     []string                     // names of its Services
}

type operatorUnits []*operatorUnit

// newOperatorUnits returns the operators of these names and those that they need.
func newOperatorUnits(s *supervisor, api apiClient, ca authority, bin string, p ports, names []string) (operatorUnits, error) {
	selected, err := selectOperators(names)
	if err != nil {
		return nil, err
	}
	var units operatorUnits
	for _, i := range selected {
		u := &operatorUnit{operator: operators[i], sup: s, api: api, ca: ca}
		u.health, u.webhook = p.ofOperator(i)
		if err := ca.writeKubeconfig(s.layout, u.name, serviceAccount(u.namespace, u.account), p.api); err != nil {
			return nil, err
		}
		if r := u.rotation; r != nil {
			if u.ca, err = newAuthority(x509.RSA, r.ca, r.organization); err != nil {
				return nil, err
			}
		}
		shipped, err := readManifest(u.manifestFile(bin))
		if err != nil {
			return nil, err
		}
		if u.objects, err = u.adapt(shipped, u.webhook, u.ca.certPEM()); err != nil {
			return nil, err
		}
		u.comp = u.component(bin)
		units = append(units, u)
	}
	return units, nil
}

// frameworks returns the kinds of the operators in Kueue's configuration.
func (us operatorUnits) frameworks() []string {
	var all []string
	for _, u := range us {
		all = append(all, u.operator.frameworks...)
	}
	return all
}

// define creates the definitions of the operators' kinds.
func (us operatorUnits) define(ctx context.Context) error {
	return us.each(ctx, func(ctx context.Context, u *operatorUnit) error { return u.api.createCRDs(ctx, u.objects.crds) })
}

// install creates the operators' other objects, starts them and waits until they are
// ready.
func (us operatorUnits) install(ctx context.Context) error {
	return us.each(ctx, func(ctx context.Context, u *operatorUnit) error { return u.install(ctx) })
}

func (us operatorUnits) each(ctx context.Context, do func(context.Context, *operatorUnit) error) error {
	var steps []func(context.Context) error
	for _, u := range us {
		steps = append(steps, func(ctx context.Context) error { return do(ctx, u) })
	}
	return together(ctx, steps...)
}

// adapt changes the shipped manifests so that a process with this port serves the
// webhooks. The supervisor runs the process of the Deployment, and writes the
// certificate of the Secret.
func (o operator) adapt(manifests []*unstructured.Unstructured, webhook int, ca []byte) (out operatorObjects, err error) {
	if out.shippedObjects, err = redirect(manifests, webhook, ca); err != nil {
		return out, err
	}
	hasAccount := false
	groups := map[string]bool{}
	for _, u := range out.crds {
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		groups[group] = true
	}
	shipped := out.others
	out.others = nil
	for _, u := range shipped {
		switch u.GetKind() {
		case "Deployment", "Secret":
			continue
		case "ServiceAccount":
			hasAccount = hasAccount || u.GetNamespace() == o.namespace && u.GetName() == o.account
		case "Service":
			out.hosts = append(out.hosts, u.GetName()+"."+u.GetNamespace()+".svc")
		case "ConfigMap":
			if text, found, _ := unstructured.NestedString(u.Object, "data", operatorConfigKey); found {
				out.config = text
			}
		}
		if groups[u.GroupVersionKind().Group] {
			out.instances = append(out.instances, u)
		} else {
			out.others = append(out.others, u)
		}
	}
	if len(out.namespaces) == 0 {
		out.namespaces = []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.namespace},
		}}}
	}
	if !hasAccount {
		return out, fmt.Errorf("the manifests of %s have no ServiceAccount %s/%s", o.name, o.namespace, o.account)
	}
	if out.config == "" && o.flags == nil {
		return out, fmt.Errorf("the manifests of %s have no ConfigMap with %s", o.name, operatorConfigKey)
	}
	return out, nil
}

// configuration returns the configuration file with the settings of this machine.
func (o operator) configuration(text string, health, webhook int, certDir string) ([]byte, error) {
	cfg := map[string]any{}
	server := map[string]any{"host": "127.0.0.1", "port": webhook}
	if o.certDir {
		server["certDir"] = certDir
	}
	err := yaml.Unmarshal([]byte(text), &cfg)
	if err == nil {
		err = setSections(cfg, map[string]map[string]any{
			"health":         {"healthProbeBindAddress": loopback(health)},
			"metrics":        {"bindAddress": "0"}, // off
			"webhook":        server,
			"leaderElection": {"leaderElect": false},
			o.certificates:   {"enable": false},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", o.name, err)
	}
	return yaml.Marshal(cfg)
}

// folder is the process's folder of temporary files. In it controller-runtime finds
// the certificate of webhooks, unless configured otherwise, which not all operators
// can be.
func (u *operatorUnit) folder() string { return u.sup.layout.data(filepath.Join("operators", u.name)) }

func (u *operatorUnit) certFolder() string {
	return filepath.Join(u.folder(), "k8s-webhook-server", "serving-certs")
}

func (u *operatorUnit) configFile() string { return filepath.Join(u.folder(), "config.yaml") }

func (u *operatorUnit) component(bin string) *component {
	args := []string{"--config=" + u.configFile()}
	if u.flags != nil {
		args = u.flags(u.health, u.webhook)
	}
	c := &component{
		name: u.name, path: filepath.Join(bin, u.name), args: args,
		env:   []string{"KUBECONFIG=" + u.sup.layout.componentConfig(u.name), "TMPDIR=" + u.folder()},
		ready: u.ready,
		grace: 1200 * time.Millisecond,
		ports: []namedPort{{"health", u.health}},
	}
	if len(u.objects.webhooks) > 0 {
		c.ports = append(c.ports, namedPort{"webhook", u.webhook})
	}
	return c
}

// ready also waits for the webhooks' server, which some operators report ready before
// it listens.
func (u *operatorUnit) ready(ctx context.Context) error {
	err := httpOK(httpURL(u.health) + "/readyz")(ctx)
	if err == nil && len(u.objects.webhooks) > 0 {
		err = portOpen(u.webhook)(ctx)
	}
	return err
}

func (u *operatorUnit) install(ctx context.Context) error {
	if err := u.writeFiles(); err != nil {
		return err
	}
	if err := u.api.create(ctx, u.objects.namespaces...); err != nil {
		return err
	}
	if len(u.objects.webhooks) > 0 {
		if err := u.writeCertificate(ctx); err != nil {
			return err
		}
	}
	if err := u.api.create(ctx, slices.Concat(u.objects.others, u.objects.webhooks)...); err != nil {
		return err
	}
	if err := u.sup.run(ctx, u.comp); err != nil {
		return err
	}
	return retry(ctx, func(ctx context.Context) error { return u.api.create(ctx, u.objects.instances...) }, isTransient)
}

// writeFiles creates the process's folder, with its configuration if it reads one.
func (u *operatorUnit) writeFiles() error {
	if err := os.MkdirAll(u.folder(), 0o700); err != nil {
		return fmt.Errorf("folder of %s: %w", u.name, err)
	}
	if u.flags != nil {
		return nil
	}
	file, err := u.configuration(u.objects.config, u.health, u.webhook, u.certFolder())
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.configFile(), file, 0o644); err != nil {
		return fmt.Errorf("configuration of %s: %w", u.name, err)
	}
	return nil
}

// writeCertificate writes the webhooks' certificate, also for an operator that rotates
// it, which waits for one in a folder of its own.
func (u *operatorUnit) writeCertificate(ctx context.Context) error {
	var secret *metav1.ObjectMeta
	if u.rotation != nil {
		if err := sharedPair(u.rotation.folder); err != nil {
			return fmt.Errorf("%s waits for a certificate in %s: %w", u.name, u.rotation.folder, err)
		}
		secret = &metav1.ObjectMeta{Namespace: u.namespace, Name: u.rotation.secret}
	}
	return u.api.writeWebhookCertificate(ctx, u.ca, filepath.Join(u.certFolder(), "tls"), u.name, u.objects.hosts, secret)
}
