package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	kueueNamespace  = "kueue-system"
	kueueDeployment = "kueue-controller-manager"
	kueueContainer  = "manager"
	kueueConfigMap  = "kueue-manager-config"
	kueueConfigKey  = "controller_manager_config.yaml"
	kueueSecret     = "kueue-webhook-server-cert"
	webhookHost     = "kueue-webhook-service." + kueueNamespace + ".svc"
)

// Kueue reads the certificates of two of its servers from fixed folders, unless
// it manages its certificates itself.
const (
	visibilityDir = "/visibility"
	metricsDir    = "/etc/kueue/metrics/certs"
)

// kueueUnit is Kueue's process and its objects in the cluster.
type kueueUnit struct {
	sup     *supervisor
	api     apiClient
	comp    *component
	local   kueueLocal
	objects kueueObjects
	ca      authority // of the webhooks' certificate
	config  string    // initial text of the ConfigMap

	template string // pod template that the process was last started for; guarded by comp.op
}

// newKueueUnit returns Kueue with these frameworks besides those of its configuration.
func newKueueUnit(s *supervisor, api apiClient, ca authority, bin string, p ports, frameworks []string) (*kueueUnit, error) {
	config, err := os.ReadFile(kueueConfig(bin))
	if errors.Is(err, os.ErrNotExist) {
		config, err = []byte(kueueDefaults), nil
	}
	if err != nil {
		return nil, fmt.Errorf("Kueue's configuration: %w", err)
	}
	text := string(config)
	if len(frameworks) > 0 {
		if text, err = withFrameworks(text, frameworks); err != nil {
			return nil, err
		}
	}
	local := kueueLocal{ports: p, certDir: s.layout.pki("kueue-webhook"), noVisibility: visibilityDisabled(config)}
	if local.noVisibility {
		s.say("Kueue runs without its visibility API, as its configuration says")
	} else if err := sharedPair(visibilityDir); err != nil {
		s.say("this user cannot write %s (%v): Kueue runs without its visibility API (gate VisibilityOnDemand off)", visibilityDir, err)
		local.noVisibility = true
	}
	if err := sharedPair(metricsDir); err != nil {
		s.say("this user cannot write %s (%v): Kueue manages its own certificates, and starts more slowly", metricsDir, err)
		local.ownCertificates = true
		if ca, err = newAuthority(x509.RSA, "kueue-ca", "kueue"); err != nil {
			return nil, err
		}
	}
	install, err := readManifest(kueueInstall(bin))
	if err != nil {
		return nil, err
	}
	version, err := os.ReadFile(kueueVersion(bin))
	if err != nil {
		return nil, fmt.Errorf("Kueue's version: %w", err)
	}
	objects, err := adapt(install, local, ca.certPEM(), strings.TrimSpace(string(version)))
	if err != nil {
		return nil, err
	}
	k := &kueueUnit{sup: s, api: api, local: local, objects: objects, ca: ca, config: text}
	k.comp = &component{
		name: kueueName, path: filepath.Join(bin, kueueName),
		ready:   k.ready,
		grace:   1200 * time.Millisecond,
		ports:   []namedPort{{"health", p.kueueHealth}, {"metrics", p.kueueMetrics}, {"webhook", p.kueueWebhook}, {"visibility", p.kueueVisibility}},
		prepare: k.prepare,
	}
	return k, nil
}

func (k *kueueUnit) configFile() string { return k.sup.layout.run("kueue-config.yaml") }

// ready also writes the pod template of the running process to a file, in which
// tests see that a rollout has completed.
func (k *kueueUnit) ready(ctx context.Context) error {
	if err := httpOK(httpURL(k.local.kueueHealth) + "/readyz")(ctx); err != nil {
		return err
	}
	return os.WriteFile(k.sup.layout.run("kueue-template.json"), []byte(k.template), 0o644)
}

// install creates Kueue's objects, starts the process and waits until its APIs
// answer.
func (k *kueueUnit) install(ctx context.Context) error {
	if err := k.api.create(ctx, k.objects.namespaces...); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.api.createCRDs(groupCtx, k.objects.crds) })
	group.Go(func() error { return k.writeCertificate(groupCtx) })
	group.Go(func() error {
		config := &corev1.ConfigMap{ObjectMeta: kueueMeta(kueueConfigMap), Data: map[string]string{kueueConfigKey: k.config}}
		config.Labels = k.objects.deployment.GetLabels() // with its version
		if err := k.api.Create(groupCtx, config); err != nil {
			return fmt.Errorf("create ConfigMap %s: %w", kueueConfigMap, err)
		}
		// Pods are refused until their service account exists.
		if err := k.api.create(groupCtx, k.objects.others...); err != nil {
			return err
		}
		return k.api.create(groupCtx, k.objects.deployment)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	if err := k.sup.run(ctx, k.comp); err != nil {
		return err
	}
	if err := k.waitWebhooks(ctx); err != nil {
		return err
	}
	// Last, since a registered API that does not answer makes discovery fail for
	// all clients, and the API server retries it only after a while.
	if err := k.api.create(ctx, k.objects.apiServices...); err != nil {
		return err
	}
	return k.waitVisibility(ctx)
}

func kueueMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: kueueNamespace, Name: name}
}

// writeCertificate writes the webhooks' certificate.
func (k *kueueUnit) writeCertificate(ctx context.Context) error {
	var secret *metav1.ObjectMeta
	if k.local.ownCertificates {
		secret = new(kueueMeta(kueueSecret))
	}
	return k.api.writeWebhookCertificate(ctx, k.ca, filepath.Join(k.local.certDir, "tls"), webhookHost, []string{webhookHost}, secret)
}

// prepare sets up the next start of the process as a pod that starts now would
// run: with the current ConfigMap and Deployment. The caller holds comp.op.
func (k *kueueUnit) prepare(ctx context.Context) error {
	var deployment appsv1.Deployment
	var config corev1.ConfigMap
	if err := k.api.Get(ctx, client.ObjectKey{Namespace: kueueNamespace, Name: kueueDeployment}, &deployment); err != nil {
		return fmt.Errorf("read Kueue's Deployment: %w", err)
	}
	if err := k.api.Get(ctx, client.ObjectKey{Namespace: kueueNamespace, Name: kueueConfigMap}, &config); err != nil {
		return fmt.Errorf("read Kueue's configuration: %w", err)
	}
	settings, err := k.local.overlay(config.Data[kueueConfigKey], gatesOf(&deployment))
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.configFile(), settings.file, 0o644); err != nil {
		return fmt.Errorf("write Kueue's configuration: %w", err)
	}
	hooks, err := webhooksFor(k.objects.webhooks, settings.frameworks)
	if err != nil {
		return err
	}
	if err := k.api.apply(ctx, hooks...); err != nil {
		return err
	}
	k.comp.args = []string{
		"--config=" + k.configFile(),
		// The visibility server reads the flag only, not the variable.
		"--kubeconfig=" + k.sup.layout.componentConfig(kueueName),
	}
	if settings.gates != "" {
		k.comp.args = append(k.comp.args, "--feature-gates="+settings.gates)
	}
	k.template = templateOf(&deployment)
	return nil
}

// templateOf returns the pod template as JSON. It changes when the Deployment
// rolls out, and not with the Deployment's status.
func templateOf(d *appsv1.Deployment) string {
	b, _ := json.Marshal(d.Spec.Template) // has no kind of value that fails
	return string(b)
}

// gatesOf returns the value of the manager's argument --feature-gates as Go's
// flags read it: with one dash or two, in one part or two; the last one wins.
func gatesOf(d *appsv1.Deployment) string {
	gates := ""
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name != kueueContainer {
			continue
		}
		for i, arg := range c.Args {
			name, value, joined := strings.Cut(arg, "=")
			if name != "--feature-gates" && name != "-feature-gates" {
				continue
			}
			if !joined && i+1 < len(c.Args) {
				value = c.Args[i+1]
			}
			gates = value
		}
	}
	return gates
}

// waitDeployment waits until the Deployment has its pod, which takes the
// scheduler, KWOK and the node.
func (k *kueueUnit) waitDeployment(ctx context.Context) error {
	return waitFor(ctx, time.Minute, func(ctx context.Context) error {
		var d appsv1.Deployment
		err := k.api.Get(ctx, client.ObjectKey{Namespace: kueueNamespace, Name: kueueDeployment}, &d)
		if err == nil && d.Status.AvailableReplicas == 0 {
			err = errors.New("Kueue's Deployment is not available")
		}
		return err
	})
}

// waitWebhooks waits until the API server reaches Kueue's webhooks, which takes
// a moment after Kueue is ready.
func (k *kueueUnit) waitWebhooks(ctx context.Context) error {
	return waitFor(ctx, time.Minute, func(ctx context.Context) error {
		return k.api.Create(ctx, resourceFlavor("localcluster-probe"), client.DryRunAll)
	})
}

func resourceFlavor(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": map[string]any{"name": name},
	}}
}

// waitVisibility waits until the API server uses the visibility API. The
// cluster is useful without, so a failure is only printed.
func (k *kueueUnit) waitVisibility(ctx context.Context) error {
	for _, service := range k.objects.apiServices {
		err := waitCondition(ctx, k.api, 20*time.Second, service, "Available")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			k.sup.say("Kueue's visibility API %s: %v", service.GetName(), err)
		}
	}
	return nil
}

// settleTime is how long the Deployment must not change before Kueue restarts,
// so that two changes in a row cost one restart.
const settleTime = 200 * time.Millisecond

// follow restarts Kueue whenever its Deployment rolls out a new pod, and for no
// other reason: Kueue reads its ConfigMap at its start only, and a change of the
// ConfigMap without a rollout must have no effect here either. It returns when
// ctx ends.
func (k *kueueUnit) follow(ctx context.Context) {
	templates := make(chan string)
	go func() {
		for ctx.Err() == nil {
			k.watchTemplate(ctx, templates)
			sleep(ctx, 500*time.Millisecond) // the watch also ends while the API server is stopped
		}
	}()
	var pending string
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case template := <-templates:
			if template != pending {
				pending, due = template, time.After(settleTime)
			}
		case <-due:
			if err := k.roll(ctx, pending); err != nil && ctx.Err() == nil {
				k.sup.say("Kueue refused its configuration: %v", err)
			}
		}
	}
}

// watchTemplate sends the Deployment's pod template at every change, until the
// watch ends.
func (k *kueueUnit) watchTemplate(ctx context.Context, templates chan<- string) {
	w, err := k.api.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(kueueNamespace), client.MatchingFields{"metadata.name": kueueDeployment})
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if d, ok := event.Object.(*appsv1.Deployment); ok && d.DeletionTimestamp == nil {
			select {
			case templates <- templateOf(d):
			case <-ctx.Done():
			}
		}
	}
}

// roll restarts Kueue for a new pod template, with the current configuration. A
// configuration that Kueue refuses does not end the instance: an admin wrote it
// and can correct it.
func (k *kueueUnit) roll(ctx context.Context, template string) error {
	c := k.comp
	c.op.Lock()
	defer c.op.Unlock()
	if template == k.template {
		return nil
	}
	k.template = template // even if the start fails: it is tried once
	if k.sup.stateOf(c) == stopped {
		return nil // prepare reads all of this when Kueue starts again
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	begin := time.Now()
	k.sup.stop(c)
	err := k.sup.start(ctx, c)
	switch {
	case err == nil:
		k.sup.say("Kueue restarted with its new configuration (%.1f s)", time.Since(begin).Seconds())
		return nil
	case errors.Is(err, errExited):
		return k.sup.withLog(c, fmt.Errorf("%w; Kueue starts again at the next rollout of Deployment %s/%s", err, kueueNamespace, kueueDeployment))
	default:
		return err
	}
}
