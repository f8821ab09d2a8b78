package charttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

const (
	monitoringAPI = "monitoring.coreos.com/v1"
	gatewayAPI    = "gateway.networking.k8s.io/v1"
)

// signedIn are values with which the chart installs.
const signedIn = rawValues

// postgresql are the values of two replicas.
const postgresql = signedIn + `
replicas: 2
history: {type: postgresql, postgresql: {url: {name: database}}}
`

// everything are values that switch on all options which go together.
const everything = postgresql + `
clusterName: training
imagePullSecrets: [{name: registry}]
image: {repository: registry.example.com/kuota, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
admins: {groups: ["oidc:admins"], users: [root@example.com]}
jobControllers: ["system:serviceaccount:a:b"]
writingAccounts: [ci/robot]
logs: {url: "https://logs.example.com/?q={pod}"}
dashboard: {url: "https://grafana.example.com/d/abc?var-team={team}"}
hardware: {prometheus: {url: "https://prometheus.example.com", token: {name: prometheus}, match: 'cluster="prod"', nodeLabel: node}}
metrics:
  enabled: true
  teams: true
  serviceMonitor: {enabled: true, labels: {release: prometheus}}
  prometheusRule: {enabled: true, labels: {release: prometheus}}
  dashboard: {enabled: true}
extraCA: {name: company-ca}
tls: {secretName: kuota-tls}
auditWebhook: {enabled: true, token: {name: audit}, tls: {secretName: audit-tls}, service: {clusterIP: 10.96.0.9}}
trustedProxies: [10.0.0.0/8]
service: {annotations: {a: b}}
ingress: {enabled: true, className: nginx, annotations: {a: b}, tlsSecretName: kuota-tls}
httpRoute: {enabled: true, parentRefs: [{name: public, namespace: gateways}], annotations: {a: b}}
networkPolicy: {from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]}
serviceAccount: {annotations: {a: b}}
podLabels: {a: b}
podAnnotations: {a: b}
priorityClassName: high
nodeSelector: {a: b}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
extraArgs: [--simulation-memory=2Gi]
`

var scheme = runtime.NewScheme()

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, schedulingv1.AddToScheme, apiextensionsv1.AddToScheme, monitoringv1.AddToScheme, gatewayv1.Install,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
}

// decode returns the objects of manifests. It fails the test if an object has an
// unknown or a duplicate field.
func decode(t *testing.T, files map[string]string) (objects []client.Object) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(files[name]))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var kind runtime.TypeMeta
			if err := yaml.Unmarshal(document, &kind); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			if kind.Kind == "" {
				continue // comments only
			}
			object, err := scheme.New(kind.GroupVersionKind())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			objects = append(objects, object.(client.Object))
		}
	}
	return objects
}

func render(t *testing.T, r Release) []client.Object {
	t.Helper()
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, files)
}

// find returns the objects of a type.
func find[T client.Object](objects []client.Object) (found []T) {
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

func one[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	found := find[T](objects)
	if len(found) != 1 {
		t.Fatalf("got %d objects of type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func console(t *testing.T, objects []client.Object) (*appsv1.Deployment, corev1.Container) {
	t.Helper()
	d := one[*appsv1.Deployment](t, objects)
	return d, d.Spec.Template.Spec.Containers[0]
}

// releases are installations that must render.
var releases = map[string]Release{
	"sqlite":              {Name: "kuota", Namespace: "kuota-system", Values: signedIn},
	"other names":         {Name: "gpu", Namespace: "platform", Values: signedIn},
	"a long name":         {Name: strings.Repeat("n", 53), Namespace: "platform", Values: signedIn},
	"postgresql":          {Name: "kuota", Namespace: "kuota-system", Values: postgresql},
	"no history":          {Name: "kuota", Namespace: "kuota-system", Values: signedIn + "history: {type: none}"},
	"everything":          {Name: "gpu", Namespace: "platform", Values: everything, APIs: []string{monitoringAPI, gatewayAPI}},
	"no sign-in":          {Name: "kuota", Namespace: "kuota-system", Values: "signIn: {enabled: false}"},
	"legacy":              {Name: "kuota", Namespace: "kuota-system", Values: signedIn + "legacyImpersonation: true", Kubernetes: "v1.33.4-gke.1245000"},
	"Kueue of others":     {Name: "kuota", Namespace: "kuota-system", Values: signedIn + "kueue: {configurationAccess: Get}"},
	"no Kueue permission": {Name: "kuota", Namespace: "kuota-system", Values: signedIn + "kueue: {configurationAccess: None}"},
	"without CRDs":        {Name: "kuota", Namespace: "kuota-system", Values: signedIn + "crds: {install: false}\nuninstall: {hook: false}\nnetworkPolicy: {enabled: false}"},
}

// Every installation renders into valid objects in the release's namespace.
func TestReleases(t *testing.T) {
	for name, r := range releases {
		t.Run(name, func(t *testing.T) {
			objects := render(t, r)
			seen := map[string]bool{}
			for _, o := range objects {
				kind := o.GetObjectKind().GroupVersionKind().Kind
				id := kind + " " + o.GetNamespace() + "/" + o.GetName()
				if seen[id] {
					t.Errorf("%s is rendered twice", id)
				}
				seen[id] = true
				if problems := validation.IsDNS1123Subdomain(o.GetName()); len(problems) > 0 || len(o.GetName()) > 63 {
					t.Errorf("%s: invalid name %v", id, problems)
				}
				if n := o.GetNamespace(); n != "" && n != r.Namespace && (n != "kueue-system" || o.GetName() != "kuota-kueue-configuration") && (n != "ci" || o.GetName() != "kuota-impersonation-robot") {
					t.Errorf("%s is in a namespace of others", id)
				}
			}
			subjects := 0
			for _, b := range find[*rbacv1.ClusterRoleBinding](objects) {
				for _, s := range b.Subjects {
					if s.Kind == "ServiceAccount" && s.Namespace != r.Namespace {
						t.Errorf("%s binds an account of namespace %s", b.Name, s.Namespace)
					}
					subjects++
				}
			}
			if subjects < 2 {
				t.Errorf("%d accounts have permissions", subjects)
			}
			for _, b := range find[*admissionv1.ValidatingAdmissionPolicyBinding](objects) {
				// Parameters without a name are all teams or departments, which have no namespace.
				if p := b.Spec.ParamRef; p != nil && p.Name != "" && p.Namespace != r.Namespace {
					t.Errorf("policy %s reads its parameters in %s", b.Name, p.Namespace)
				}
			}
			d, c := console(t, objects)
			account := d.Spec.Template.Spec.ServiceAccountName
			if !slices.ContainsFunc(find[*corev1.ServiceAccount](objects), func(a *corev1.ServiceAccount) bool { return a.Name == account }) {
				t.Errorf("the console runs as %s, which does not exist", account)
			}
			for _, s := range find[*corev1.Service](objects) {
				for key, value := range s.Spec.Selector {
					if d.Spec.Template.Labels[key] != value {
						t.Errorf("Service %s selects no pod", s.Name)
					}
				}
			}
			checkFlags(t, c.Args)
		})
	}
}

// restricted reports why a pod violates the Pod Security Standard "restricted", or has
// a root file system that it can write.
func checkRestricted(t *testing.T, spec corev1.PodSpec) {
	t.Helper()
	p := spec.SecurityContext
	if p == nil || p.RunAsNonRoot == nil || !*p.RunAsNonRoot || p.RunAsUser == nil || *p.RunAsUser == 0 || p.SeccompProfile == nil || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod may run as root or without seccomp: %+v", p)
	}
	for _, c := range spec.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("container %s: %+v", c.Name, s)
		}
		if len(c.Resources.Requests) == 0 || len(c.Resources.Limits) == 0 {
			t.Errorf("container %s has no requests or limits", c.Name)
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("container %s mounts volume %s, which does not exist", c.Name, m.Name)
			}
		}
	}
}

func TestPodsAreRestricted(t *testing.T) {
	for name, r := range releases {
		t.Run(name, func(t *testing.T) {
			objects := render(t, r)
			d, _ := console(t, objects)
			checkRestricted(t, d.Spec.Template.Spec)
			for _, j := range find[*batchv1.Job](objects) {
				checkRestricted(t, j.Spec.Template.Spec)
			}
			checkRestricted(t, one[*corev1.Pod](t, objects).Spec)
		})
	}
}

// flagNames returns the flags that cmd/kuota registers.
func flagNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(), "cmd", "kuota", "config*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 4 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(f.Sel.Name, "Var") {
				if literal, ok := call.Args[1].(*ast.BasicLit); ok {
					name, _ := strconv.Unquote(literal.Value)
					names[name] = true
				}
			}
			return true
		})
	}
	if !names["listen"] || !names["oidc-issuer"] || !names["prometheus-url"] {
		t.Fatalf("the flags of cmd/kuota are not found: %v", names)
	}
	return names
}

// checkFlags reports flags that the console does not have, or that occur twice.
func checkFlags(t *testing.T, args []string) {
	t.Helper()
	known, seen := flagNames(t), map[string]bool{}
	if len(args) == 0 || args[0] != "serve" {
		t.Fatalf("the arguments are %q, want serve first", args)
	}
	for _, arg := range args[1:] {
		name, _, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok || !known[name] {
			t.Errorf("the console has no flag %s", arg)
		}
		if seen[name] {
			t.Errorf("flag %s is set twice", name)
		}
		seen[name] = true
	}
}

// The flags and variables of the console follow from the values.
func TestConsole(t *testing.T) {
	for name, tc := range map[string]struct {
		release      string
		wantArgs     []string
		withoutFlags []string
		wantStrategy appsv1.DeploymentStrategyType
		wantProbes   corev1.URIScheme
	}{
		"sqlite":          {"sqlite", []string{"--helm-release=kuota", "--listen=:8080", "--history=/var/lib/kuota/history.db", "--session-keys-file=/etc/kuota/session-keys/session-keys"}, []string{"oidc-client-secret-file"}, appsv1.RecreateDeploymentStrategyType, "HTTP"},
		"postgresql":      {"postgresql", []string{"--listen=:8080"}, []string{"history"}, appsv1.RollingUpdateDeploymentStrategyType, "HTTP"},
		"no history":      {"no history", []string{"--history=none"}, nil, appsv1.RollingUpdateDeploymentStrategyType, "HTTP"},
		"no sign-in":      {"no sign-in", []string{"--listen=127.0.0.1:8080"}, []string{"oidc-issuer", "url", "session-keys-file", "oidc-username-claim"}, appsv1.RecreateDeploymentStrategyType, ""},
		"Kueue of others": {"Kueue of others", []string{"--manage-kueue=false"}, nil, appsv1.RecreateDeploymentStrategyType, "HTTP"},
		"everything": {"everything", []string{
			"--tls-cert-file=/etc/kuota/tls/tls.crt", "--prometheus-token-file=/etc/kuota/prometheus-token/token", `--prometheus-match=cluster="prod"`, "--metrics-address=:9090", "--team-metrics=true",
			"--trusted-proxies=10.0.0.0/8", "--simulation-memory=2Gi", "--cluster-name=training",
		}, []string{"history"}, appsv1.RollingUpdateDeploymentStrategyType, "HTTPS"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, releases[tc.release])
			d, c := console(t, objects)
			for _, want := range tc.wantArgs {
				if !slices.Contains(c.Args, want) {
					t.Errorf("%s is missing: %q", want, c.Args)
				}
			}
			for _, flag := range tc.withoutFlags {
				if slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--"+flag+"=") }) {
					t.Errorf("--%s is set: %q", flag, c.Args)
				}
			}
			if d.Spec.Strategy.Type != tc.wantStrategy {
				t.Errorf("strategy %s, want %s", d.Spec.Strategy.Type, tc.wantStrategy)
			}
			env := map[string]corev1.EnvVar{}
			for _, e := range c.Env {
				env[e.Name] = e
			}
			if e := env["KUOTA_NAMESPACE"]; e.ValueFrom == nil || e.ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
				t.Errorf("the console does not know its namespace: %+v", e)
			}
			if e, ok := env["KUOTA_HISTORY"]; ok != slices.Contains(tc.withoutFlags, "history") || ok && (e.ValueFrom.SecretKeyRef.Name != "database" || e.ValueFrom.SecretKeyRef.Key != "database-url") {
				t.Errorf("the address of the database: %+v", e)
			}
			if tc.wantProbes == "" {
				if c.ReadinessProbe != nil || len(find[*corev1.Service](objects)) > 0 {
					t.Error("a console on loopback has probes or a Service, which cannot reach it")
				}
				return
			}
			for path, p := range map[string]*corev1.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
				if p == nil || p.HTTPGet.Path != path || p.HTTPGet.Scheme != tc.wantProbes {
					t.Errorf("probe %s: %+v", path, p)
				}
			}
		})
	}
}

// The ingress and the route have the base path of url, and probes are at the root.
func TestBasePath(t *testing.T) {
	for url, want := range map[string]string{"https://kuota.example.com": "/", "https://kuota.example.com/": "/", "https://apps.example.com/team-a/kuota": "/team-a/kuota"} {
		release := releases["everything"]
		release.Values = merge(release.Values, "url: "+url)
		objects := render(t, release)
		if got := one[*networkingv1.Ingress](t, objects).Spec.Rules[0].HTTP.Paths[0].Path; got != want {
			t.Errorf("%s: the ingress has the path %s, want %s", url, got, want)
		}
		if got := *one[*gatewayv1.HTTPRoute](t, objects).Spec.Rules[0].Matches[0].Path.Value; got != want {
			t.Errorf("%s: the route has the path %s, want %s", url, got, want)
		}
		if _, c := console(t, objects); !slices.Contains(c.Args, "--url="+url) || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
			t.Errorf("%s: the console has the flags %q and the probe %s", url, c.Args, c.ReadinessProbe.HTTPGet.Path)
		}
	}
}

// Every optional object exists if its value says so, and only then.
func TestOptionalObjects(t *testing.T) {
	kinds := func(r Release) map[string]bool {
		set := map[string]bool{}
		for _, o := range render(t, r) {
			set[reflect.TypeOf(o).Elem().Name()] = true
		}
		return set
	}
	few, all := kinds(releases["sqlite"]), kinds(releases["everything"])
	for _, kind := range []string{"PodDisruptionBudget", "ServiceMonitor", "PrometheusRule", "ConfigMap", "Ingress", "HTTPRoute"} {
		if few[kind] || !all[kind] {
			t.Errorf("%s: %v without its value, %v with it", kind, few[kind], all[kind])
		}
	}
	if !few["PersistentVolumeClaim"] || all["PersistentVolumeClaim"] {
		t.Error("there is a volume with postgresql, or none with sqlite")
	}
	if without := kinds(releases["without CRDs"]); without["CustomResourceDefinition"] || without["Job"] || without["NetworkPolicy"] {
		t.Errorf("crds.install, uninstall.hook and networkPolicy.enabled are false: %v", without)
	}
	objects := render(t, releases["everything"])
	if got := one[*networkingv1.Ingress](t, objects).Spec.Rules[0].Host; got != "kuota.example.com" {
		t.Errorf("the ingress has host %s", got)
	}
	if got := one[*gatewayv1.HTTPRoute](t, objects).Spec.Hostnames; !slices.Equal(got, []gatewayv1.Hostname{"kuota.example.com"}) {
		t.Errorf("the route has hosts %s", got)
	}
	if data := one[*corev1.ConfigMap](t, objects).Data["kuota.json"]; !json.Valid([]byte(data)) || !strings.Contains(data, "{{route}}") {
		t.Error("the dashboard is not Grafana's JSON")
	}
	if data := one[*corev1.ConfigMap](t, objects).Data["teams.json"]; !json.Valid([]byte(data)) || !strings.Contains(data, "{{team}}") {
		t.Error("the dashboard of teams is not Grafana's JSON")
	}
	monitor, matched := one[*monitoringv1.ServiceMonitor](t, objects), 0
	for _, s := range find[*corev1.Service](objects) {
		match := true
		for key, value := range monitor.Spec.Selector.MatchLabels {
			match = match && s.Labels[key] == value
		}
		if match && s.Spec.Ports[0].Name == monitor.Spec.Endpoints[0].Port {
			matched++
		}
	}
	if matched != 1 {
		t.Errorf("the ServiceMonitor selects %d Services, want 1", matched)
	}
	for _, rule := range one[*monitoringv1.PrometheusRule](t, objects).Spec.Groups[0].Rules {
		for _, s := range find[*corev1.Service](objects) {
			if s.Spec.Ports[0].Name == "metrics" && !strings.Contains(rule.Expr.String(), `service="`+s.Name+`"`) {
				t.Errorf("the rule %s is about other consoles: %s", rule.Alert, rule.Expr.String())
			}
		}
	}
}

// The CRDs and roles that people are bound to remain when the release is deleted; so
// does the volume. Everything else is deleted.
func TestKeptObjects(t *testing.T) {
	var kept []string
	for _, o := range render(t, releases["sqlite"]) {
		part := strings.HasPrefix(o.GetName(), "kuota-team-member-")
		switch keep := o.GetAnnotations()["helm.sh/resource-policy"] == "keep"; {
		case part && !keep:
			t.Errorf("%s is deleted, and its rules are part of kuota-team-member, which is kept", o.GetName())
		case keep && !part:
			kept = append(kept, o.GetName())
		}
	}
	slices.Sort(kept)
	if diff := cmp.Diff([]string{"clusterpolicies.kuota.dev", "computeallocations.kuota.dev", "departments.kuota.dev", "elasticjobs.kuota.dev", "kuota-admin", "kuota-department-admin", "kuota-department-viewer", "kuota-history", "kuota-team-member"}, kept); diff != "" {
		t.Errorf("kept objects (-want +got):\n%s", diff)
	}
}

// Members may create the kinds of the value memberKinds, and no others.
func TestMemberKinds(t *testing.T) {
	for values, want := range map[string][]string{
		"":                              {"elasticjobs", "jobs", "tasks"},
		"memberKinds: []":               {"tasks"},
		"memberKinds: [JobSet, RayJob]": {"jobsets", "rayjobs", "tasks"},
	} {
		var got []string
		for _, o := range render(t, Release{Name: "gpu", Namespace: "platform", Values: signedIn + values}) {
			if name, ok := strings.CutPrefix(o.GetName(), "kuota-team-member-"); ok && o.GetLabels()["kuota.dev/aggregate-to-team-member"] == "true" {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: roles that are part of kuota-team-member (-want +got):\n%s", values, diff)
		}
	}
	if _, err := Render(Release{Name: "gpu", Namespace: "platform", Values: signedIn + "memberKinds: [Pod]"}); err == nil {
		t.Error("a kind that members cannot be allowed to create is accepted")
	}
}

// The hook runs kuota uninstall, and deletes the CRDs only if its value says so.
func TestUninstallHook(t *testing.T) {
	for values, want := range map[string][]string{"": {"uninstall", "--yes", "--keep-crds"}, "uninstall: {deleteCRDs: true}": {"uninstall", "--yes"}} {
		objects := render(t, Release{Name: "gpu", Namespace: "platform", Values: signedIn + values})
		job := one[*batchv1.Job](t, objects)
		if job.Annotations["helm.sh/hook"] != "pre-delete" || !slices.Equal(job.Spec.Template.Spec.Containers[0].Args, want) {
			t.Errorf("%q: hook %s runs %q", values, job.Annotations["helm.sh/hook"], job.Spec.Template.Spec.Containers[0].Args)
		}
	}
}

// helm test checks the cluster with the account and the flags of the console.
func TestDoctorHook(t *testing.T) {
	objects := render(t, releases["everything"])
	d, c := console(t, objects)
	pod := one[*corev1.Pod](t, objects)
	if pod.Annotations["helm.sh/hook"] != "test" || pod.Spec.ServiceAccountName != d.Spec.Template.Spec.ServiceAccountName {
		t.Errorf("hook %s with account %s", pod.Annotations["helm.sh/hook"], pod.Spec.ServiceAccountName)
	}
	if diff := cmp.Diff(append([]string{"doctor"}, c.Args[1:]...), pod.Spec.Containers[0].Args); diff != "" {
		t.Errorf("arguments (-console +doctor):\n%s", diff)
	}
	for kind, annotations := range map[string]map[string]string{
		"console": d.Spec.Template.Annotations, "doctor": pod.Annotations, "uninstall": one[*batchv1.Job](t, objects).Spec.Template.Annotations,
	} {
		if annotations["a"] != "b" {
			t.Errorf("pods of %s lack podAnnotations: %v", kind, annotations)
		}
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if pod.Labels[key] == value && key == "app.kubernetes.io/name" {
			t.Error("Services select the pod of the test")
		}
	}
}

// Before Kubernetes 1.36 there is no policy that records the user, and impersonation is
// not limited.
func TestOlderKubernetes(t *testing.T) {
	for _, tc := range []struct {
		release             string
		wantVerb            string
		wantMutatingPolices int
	}{
		{"sqlite", "impersonate:user-info", 9},
		{"legacy", "impersonate", 0},
	} {
		objects := render(t, releases[tc.release])
		if got := len(find[*admissionv1.MutatingAdmissionPolicy](objects)); got != tc.wantMutatingPolices {
			t.Errorf("%s: %d mutating admission policies, want %d", tc.release, got, tc.wantMutatingPolices)
		}
		roles := find[*rbacv1.ClusterRole](objects)
		i := slices.IndexFunc(roles, func(r *rbacv1.ClusterRole) bool { return r.Name == "kuota-impersonation" })
		if i < 0 || roles[i].Rules[0].Verbs[0] != tc.wantVerb {
			t.Errorf("%s: roles of impersonation: %+v", tc.release, roles)
		}
	}
}

// The console may act as the service accounts that are named, and as no other.
func TestWritingAccounts(t *testing.T) {
	for values, wantVerb := range map[string]string{
		"":                            "",
		"writingAccounts: [ci/robot]": "impersonate:serviceaccount",
		"legacyImpersonation: true\nwritingAccounts: [ci/robot]": "impersonate",
	} {
		objects := render(t, Release{Name: "kuota", Namespace: "kuota-system", Values: signedIn + values})
		for _, role := range find[*rbacv1.ClusterRole](objects) {
			asAccounts := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return strings.HasPrefix(r.Verbs[0], "impersonate-on:serviceaccount:") })
			if asAccounts != ((role.Name == "kuota-impersonation" || role.Name == "kuota-elastic") && wantVerb == "impersonate:serviceaccount") {
				t.Errorf("%q: ClusterRole %s has requests as service accounts: %t", values, role.Name, asAccounts)
			}
		}
		roles := find[*rbacv1.Role](objects)
		i := slices.IndexFunc(roles, func(r *rbacv1.Role) bool { return r.Namespace == "ci" })
		if (i >= 0) != (wantVerb != "") {
			t.Errorf("%q: got Role %d in the namespace of the account", values, i)
		}
		if i >= 0 {
			group := map[string]string{"impersonate:serviceaccount": "authentication.k8s.io"}[wantVerb]
			want := []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"robot"}, Verbs: []string{wantVerb}}}
			if diff := cmp.Diff(want, roles[i].Rules); diff != "" {
				t.Errorf("%q (-want +got):\n%s", values, diff)
			}
		}
	}
}

// deploy/rbac and the files in the chart are what make generate writes.
func TestGenerated(t *testing.T) {
	manifests, err := RawManifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range manifests {
		got, err := os.ReadFile(filepath.Join(Root(), "deploy", "rbac", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("deploy/rbac/%s differs from the chart; run make generate (-file +chart):\n%s", name, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(Root(), "deploy", "rbac", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := manifests[filepath.Base(file)]; !ok {
			t.Errorf("deploy/rbac/%s is not rendered from the chart: add it to deploy/chart/templates/rbac", filepath.Base(file))
		}
	}
	copies, err := Copies()
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range copies {
		a, errA := os.ReadFile(filepath.Join(Root(), to))
		b, errB := os.ReadFile(filepath.Join(Root(), from))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not %s (%v, %v); run make generate", to, from, errA, errB)
		}
	}
	table, err := ValuesTable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(Root(), "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := ReplaceTable(string(text), table); err != nil || want != string(text) {
		t.Errorf("the table of values in docs/install.md is old; run make generate (%v)", err)
	}
}

// rules returns the rules of all roles by the role's name, and the subjects of all
// bindings.
func rules(objects []client.Object) map[string]any {
	all := map[string]any{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			all["ClusterRole "+o.Name] = o.Rules
		case *rbacv1.Role:
			all["Role "+o.Name] = o.Rules
		case *rbacv1.ClusterRoleBinding:
			all["ClusterRoleBinding "+o.Name] = o.RoleRef
		case *rbacv1.RoleBinding:
			all["RoleBinding "+o.Name] = o.RoleRef
		}
	}
	return all
}

// An installation has the permissions of deploy/rbac, which tests run the console with,
// under other names too; and nothing else but those of its hook.
func TestPermissions(t *testing.T) {
	raw := map[string]string{}
	files, err := filepath.Glob(filepath.Join(Root(), "deploy", "rbac", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw[file] = string(text)
	}
	got := rules(render(t, releases["other names"]))
	delete(got, "ClusterRole kuota-uninstall")
	delete(got, "ClusterRoleBinding kuota-uninstall")
	if diff := cmp.Diff(rules(decode(t, raw)), got); diff != "" {
		t.Errorf("permissions (-deploy/rbac +chart):\n%s", diff)
	}
}

// Helm's linter has no complaints.
func TestLint(t *testing.T) {
	version, err := common.ParseKubeVersion("v1.36.0")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(signedIn), &values); err != nil {
		t.Fatal(err)
	}
	linter := lint.RunAll(filepath.Join(Root(), "deploy", "chart"), values, "platform", lint.WithKubeVersion(version))
	for _, m := range linter.Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}
