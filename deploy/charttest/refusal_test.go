package charttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Values that cannot work are refused with a sentence that names the value and what to
// do. Several mistakes are reported together.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		release Release // Values are appended to those of signedIn, unless bare is set
		bare    bool
		want    []string
	}{
		"nothing set":            {bare: true, want: []string{"url is missing: set the external URL", "signIn.issuer is missing: set the OpenID Connect issuer", "signIn.clientID is missing", "sessions.keys.name is missing: name a Secret", "kubectl create secret generic kuota --namespace platform"}},
		"memory in two replicas": {release: Release{Values: "replicas: 2\nhistory: {type: none}"}, want: []string{"replicas is 2 and history.type is none", "Set history.type to postgresql, or replicas to 1."}},
		"SQLite in two replicas": {release: Release{Values: "replicas: 2"}, want: []string{"replicas is 2 and history.type is sqlite: a SQLite file has one writer"}},
		"no database":            {release: Release{Values: "history: {type: postgresql}"}, want: []string{"history.postgresql.url.name is missing: name a Secret"}},
		"another database":       {release: Release{Values: "history: {type: mysql}"}, want: []string{"history/type", "'none', 'sqlite', 'postgresql'"}},
		"an unknown key":         {release: Release{Values: "replica: 2"}, want: []string{"additional properties 'replica' not allowed"}},
		"an unknown inner key":   {release: Release{Values: "ingress: {host: a}"}, want: []string{"'/ingress'", "additional properties 'host' not allowed"}},
		"replicas as text":       {release: Release{Values: `replicas: "2"`}, want: []string{"'/replicas': got string, want integer"}},
		"negative replicas":      {release: Release{Values: "replicas: -1"}, want: []string{"'/replicas': minimum: got -1, want 0"}},
		"an unencrypted URL":     {release: Release{Values: "url: http://kuota.example.com"}, want: []string{`url is "http://kuota.example.com": write https and the host`}},
		"a slash after a path":   {release: Release{Values: "url: https://kuota.example.com/x/"}, want: []string{"without a slash at its end"}},
		"an empty segment":       {release: Release{Values: "url: https://kuota.example.com/x//y"}, want: []string{"with a base path if any"}},
		"dots in the path":       {release: Release{Values: "url: https://kuota.example.com/x/.."}, want: []string{"with a base path if any"}},
		"an encoded path":        {release: Release{Values: "url: https://kuota.example.com/%6b"}, want: []string{"of letters, digits"}},
		"a query":                {release: Release{Values: "url: https://kuota.example.com/x?y"}, want: []string{"with a base path if any"}},
		"the default port":       {release: Release{Values: "url: https://kuota.example.com:443/x"}, want: []string{"remove the default port"}},
		"an unencrypted issuer":  {bare: true, release: Release{Values: strings.ReplaceAll(signedIn, "https://login", "http://login")}, want: []string{`signIn.issuer is "http://login.example.com"`, "with https"}},
		"reserved prefix":        {bare: true, release: Release{Values: strings.Replace(signedIn, "clientID: kuota", "clientID: kuota, groupsPrefix: 'system:'", 1)}, want: []string{`signIn.groupsPrefix is "system:": names that start with system: are reserved`}},
		"scopes without openid":  {bare: true, release: Release{Values: strings.Replace(signedIn, "clientID: kuota", "clientID: kuota, scopes: [email]", 1)}, want: []string{"signIn.scopes: openid is required"}},
		"sign-in half off":       {bare: true, release: Release{Values: strings.Replace(signedIn, "clientID: kuota", "clientID: kuota, enabled: false", 1)}, want: []string{"signIn.enabled is false and signIn.issuer is set"}},
		"open to everyone":       {bare: true, release: Release{Values: "signIn: {enabled: false}\ningress: {enabled: true}"}, want: []string{"listens on loopback", "Everyone who reached it would act with its permissions"}},
		"a duration":             {bare: true, release: Release{Values: strings.Replace(signedIn, "keys:", "idle: soon, keys:", 1)}, want: []string{`sessions.idle is "soon": write a duration such as 2h`}},
		"a share in percent":     {release: Release{Values: "hardware: {idleBelow: 50}"}, want: []string{"'/hardware/idleBelow': maximum: got 50, want 1"}},
		"Prometheus":             {release: Release{Values: "hardware: {prometheus: {url: 'prometheus:9090'}}"}, want: []string{"hardware.prometheus.url", "http://host:port"}},
		"a log system":           {release: Release{Values: "logs: {url: 'https://{task}.example.com/'}"}, want: []string{"logs.url", "https://host/path?query"}},
		"a dashboard":            {release: Release{Values: "dashboard: {url: 'javascript:alert(1)'}"}, want: []string{"dashboard.url", "https://host/path?query"}},
		"an unencrypted token":   {release: Release{Values: "hardware: {prometheus: {url: 'http://p', token: {name: a}}}"}, want: []string{"the token is sent unencrypted"}},
		"a team's namespace":     {release: Release{Namespace: "hyperpod-ns-console"}, want: []string{"the release's namespace hyperpod-ns-console starts with naming.prefix"}},
		"a flag without dashes":  {release: Release{Values: "extraArgs: [simulation-memory=2Gi]"}, want: []string{"'/extraArgs/0'", "'simulation-memory=2Gi' does not match pattern"}},
		"a monitor of nothing":   {release: Release{Values: "metrics: {serviceMonitor: {enabled: true}}", APIs: []string{monitoringAPI}}, want: []string{"set metrics.enabled to true, too"}},
		"no Prometheus operator": {release: Release{Values: "metrics: {enabled: true, serviceMonitor: {enabled: true}}"}, want: []string{"the cluster has no ServiceMonitors: install the Prometheus operator first"}},
		"rules of nothing":       {release: Release{Values: "metrics: {prometheusRule: {enabled: true}}"}, want: []string{"metrics.prometheusRule.enabled is true: set metrics.enabled to true, too", "the cluster has no PrometheusRules: install the Prometheus operator first"}},
		"two servers, one port":  {release: Release{Values: "metrics: {enabled: true, port: 8080}"}, want: []string{"metrics.port is 8080, on which the console serves pages"}},
		"events for nothing":     {release: Release{Values: "history: {type: none}\nauditWebhook: {enabled: true, port: 8080}"}, want: []string{"auditWebhook.token.name is missing: name a Secret", "auditWebhook.tls.secretName is missing", "history.type is none", "auditWebhook.port is 8080, which the console uses already"}},
		"no Gateway API":         {release: Release{Values: "httpRoute: {enabled: true, parentRefs: [{name: a}]}"}, want: []string{"the cluster has no HTTPRoutes: install the Gateway API first"}},
		"no gateway":             {release: Release{Values: "httpRoute: {enabled: true}", APIs: []string{gatewayAPI}}, want: []string{"httpRoute.parentRefs is missing"}},
		"Kubernetes 1.35":        {release: Release{Kubernetes: "v1.35.2"}, want: []string{"this cluster runs Kubernetes v1.35.2", "Set legacyImpersonation to true to accept"}},
		"Kubernetes 1.29":        {release: Release{Kubernetes: "v1.29.0"}, want: []string{"requires kubeVersion: >=1.30.0-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.release
			if !tc.bare {
				r.Values = merge(signedIn, r.Values)
			}
			if r.Namespace == "" {
				r.Namespace = "platform"
			}
			r.Name = "gpu"
			_, err := Render(r)
			if err == nil {
				t.Fatal("the values are accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}

// merge returns values with the lines of base whose key they do not set.
func merge(base, values string) string {
	key, _, _ := strings.Cut(values, ":")
	var lines []string
	for line := range strings.Lines(base) {
		if key == "" || !strings.HasPrefix(line, key+":") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "") + "\n" + values
}

// Every value has a schema, and the schema has no value that values.yaml lacks.
func TestSchemaIsComplete(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root(), "deploy", "chart", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties           map[string]*schema `json:"properties"`
		AdditionalProperties any                `json:"additionalProperties"`
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	values, err := Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		documented[v.Path] = true
	}
	var walk func(path string, s *schema)
	walk = func(path string, s *schema) {
		if documented[path] {
			delete(documented, path)
			return
		}
		if len(s.Properties) == 0 && path != "global" {
			t.Errorf("values.yaml has no %s", path)
		}
		if len(s.Properties) > 0 && s.AdditionalProperties != false {
			t.Errorf("%s accepts unknown keys", path)
		}
		for name, p := range s.Properties {
			walk(strings.TrimPrefix(path+"."+name, "."), p)
		}
	}
	walk("", &root)
	for path := range documented {
		t.Errorf("values.schema.json has no %s", path)
	}
}
