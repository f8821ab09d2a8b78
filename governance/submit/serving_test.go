package submit

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// serve returns the request of an inference service of three replicas.
func serve() Request {
	r := train()
	r.Name, r.Pods, r.Command, r.Serving = "llama", 1, "vllm serve", &Serving{Replicas: 3, Port: 8000}
	return r
}

func notebook() Request {
	r := serve()
	r.Name, r.Serving = "ada", &Serving{Replicas: 1, Port: 8888, Notebook: &Notebook{}}
	return r
}

// serving returns a team in which all kinds of services can be created.
func serving() Team {
	team := vision()
	team.ServiceKinds, team.Writes = []Kind{Deployment, StatefulSet, LeaderWorkerSet}, true
	return team
}

func served(t *testing.T, r Request) Plan {
	t.Helper()
	plan, wrong := serving().Complete(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return plan
}

// Each service is of the kind that its pods need, in the queue of the team, and selects its
// own pods.
func TestServices(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(*Request)
		kind        Kind
		has, hasNot []string
		forward     string
		endpoint    []string
	}{
		"one pod per replica": {
			kind: Deployment,
			has: []string{
				"apiVersion: apps/v1", "kind: Deployment", "replicas: 3", "kueue.x-k8s.io/queue-name: hyperpod-ns-vision-localqueue", "kueue.x-k8s.io/priority-class: training-priority",
				"app.kubernetes.io/name: llama", "maxSurge: 0", "containerPort: 8000", "name: http", `nvidia.com/gpu: "2"`, "cpu: \"48\"", "key: gpu",
			},
			hasNot:   []string{"suspend", "restartPolicy", "status", "vpc.amazonaws.com/efa"},
			forward:  "kubectl port-forward -n hyperpod-ns-vision deployment/llama 8000:8000",
			endpoint: []string{"kind: Service", "name: llama\n", "app.kubernetes.io/name: llama", "port: 8000"},
		},
		"several pods per replica": {
			change: func(r *Request) { r.Pods = 2 }, kind: LeaderWorkerSet,
			has:      []string{"apiVersion: leaderworkerset.x-k8s.io/v1", "kind: LeaderWorkerSet", "replicas: 3", "size: 2", "containerPort: 8000", "app.kubernetes.io/name: llama", "vpc.amazonaws.com/efa"},
			forward:  "kubectl port-forward -n hyperpod-ns-vision pod/llama-0 8000:8000",
			endpoint: []string{"name: llama-leaders", `leaderworkerset.sigs.k8s.io/worker-index: "0"`},
		},
		"a service without a port": {
			change: func(r *Request) { r.Serving.Port = 0 }, kind: Deployment, hasNot: []string{"ports:"},
		},
		"a notebook": {
			change: func(r *Request) { *r = notebook() }, kind: StatefulSet,
			has: []string{"kind: StatefulSet", "replicas: 1", "containerPort: 8888"}, hasNot: []string{"volume", "workingDir"},
			forward: "kubectl port-forward -n hyperpod-ns-vision statefulset/ada 8888:8888", endpoint: []string{"name: ada"},
		},
		"a notebook with a home": {
			change: func(r *Request) {
				*r = notebook()
				r.Serving.Notebook.Claim = "ada-home"
				r.Volumes = []ClaimMount{{"/data", "datasets", true}}
			}, kind: StatefulSet,
			has:     []string{"claimName: ada-home", "mountPath: /home/jovyan", "workingDir: /home/jovyan", "claimName: datasets"},
			hasNot:  []string{"volumeClaimTemplates"},
			forward: "kubectl port-forward -n hyperpod-ns-vision statefulset/ada 8888:8888", endpoint: []string{"name: ada"},
		},
		"a notebook with a new home": {
			change: func(r *Request) {
				*r = notebook()
				r.Serving.Notebook.Home, r.Serving.Notebook.Size = "/home/ada", amount("20Gi")
			}, kind: StatefulSet,
			has:     []string{"volumeClaimTemplates", "storage: 20Gi", "ReadWriteOnce", "mountPath: /home/ada", "workingDir: /home/ada"},
			hasNot:  []string{"claimName"},
			forward: "kubectl port-forward -n hyperpod-ns-vision statefulset/ada 8888:8888", endpoint: []string{"name: ada"},
		},
		"a notebook of a class with a time limit": {
			change: func(r *Request) {
				*r = notebook()
				r.Class = "dev-priority"
			}, kind: StatefulSet,
			has:     []string{`kueue.x-k8s.io/max-exec-time-seconds: "3600"`},
			forward: "kubectl port-forward -n hyperpod-ns-vision statefulset/ada 8888:8888", endpoint: []string{"name: ada"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve()
			if tc.change != nil {
				tc.change(&r)
			}
			plan := served(t, r)
			m, err := plan.Manifest()
			if err != nil || m.Kind != tc.kind || plan.Kind != tc.kind {
				t.Fatalf("got a %s (%v), want a %s", m.Kind, err, tc.kind)
			}
			endpoint, err := plan.EndpointManifest()
			if err != nil {
				t.Fatal(err)
			}
			for text, wants := range map[string][]string{m.Text: tc.has, endpoint.Text: tc.endpoint} {
				for _, want := range wants {
					if !strings.Contains(text, want) {
						t.Errorf("it lacks %q:\n%s", want, text)
					}
				}
			}
			for _, not := range tc.hasNot {
				if strings.Contains(m.Text, not) {
					t.Errorf("it has %q:\n%s", not, m.Text)
				}
			}
			if got := plan.PortForward(); got != tc.forward {
				t.Errorf("got %q, want %q", got, tc.forward)
			}
		})
	}
}

// The manifest of a service equals what the console creates.
func TestServiceManifest(t *testing.T) {
	plan := served(t, serve())
	m, err := plan.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var read appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(m.Text), &read); err != nil {
		t.Fatal(err)
	}
	object, err := plan.object(plan.Kind)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object, &read); diff != "" {
		t.Errorf("(-created +shown):\n%s", diff)
	}
}

// Each invalid value of a service is reported at its field.
func TestInvalidServices(t *testing.T) {
	for name, tc := range map[string]struct {
		request func() Request
		change  func(*Request)
		kinds   []Kind
		want    string // the field
	}{
		"no replicas":              {serve, func(r *Request) { r.Serving.Replicas = 0 }, nil, "replicas"},
		"too many replicas":        {serve, func(r *Request) { r.Serving.Replicas = 1001 }, nil, "replicas"},
		"no port":                  {serve, func(r *Request) { r.Serving.Port = 65536 }, nil, "port"},
		"a digit first":            {serve, func(r *Request) { r.Name = "7b" }, nil, "name"},
		"a long name":              {notebook, func(r *Request) { r.Name = strings.Repeat("a", 53) }, nil, "name"},
		"a limited Deployment":     {serve, func(r *Request) { r.Class = "dev-priority" }, nil, "class"},
		"no Deployments":           {serve, nil, []Kind{LeaderWorkerSet}, "pods"},
		"no LeaderWorkerSets":      {serve, func(r *Request) { r.Pods = 2 }, []Kind{Deployment}, "pods"},
		"no services at all":       {serve, nil, []Kind{}, ""},
		"fewer pods":               {serve, func(r *Request) { r.MinPods = 1 }, nil, "least"},
		"elastic":                  {serve, func(r *Request) { r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 2 }) }, nil, "elastic"},
		"several notebooks":        {notebook, func(r *Request) { r.Serving.Replicas = 2 }, nil, "pods"},
		"a relative home":          {notebook, func(r *Request) { r.Serving.Notebook.Home = "home" }, nil, "homePath"},
		"a home over a volume":     {notebook, func(r *Request) { r.Volumes = []ClaimMount{{DefaultHome, "data", false}} }, nil, "homePath"},
		"no claim":                 {notebook, func(r *Request) { r.Serving.Notebook.Claim = "A_B" }, nil, "home"},
		"a claim that has a size":  {notebook, func(r *Request) { r.Serving.Notebook.Claim, r.Serving.Notebook.Size = "a", amount("1Gi") }, nil, "homeSize"},
		"a home without any space": {notebook, func(r *Request) { r.Serving.Notebook.Size = amount("0") }, nil, "homeSize"},
	} {
		t.Run(name, func(t *testing.T) {
			team, r := serving(), tc.request()
			if tc.change != nil {
				tc.change(&r)
			}
			if tc.kinds != nil {
				team.ServiceKinds = tc.kinds
			}
			_, wrong := team.Complete(r)
			if len(wrong) != 1 || wrong[0].Path != tc.want || wrong[0].Message == "" {
				t.Errorf("got %v, want one error at %q", wrong, tc.want)
			}
		})
	}
}
