package handlers_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kuota.dev/kuota/deploy/crds"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	gocmp "github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite openapi.json and docs/api-endpoints.md")

// TestOpenAPI checks that openapi.json describes all endpoints by their Go types, and that it
// is valid. With -update it writes it.
func TestOpenAPI(t *testing.T) {
	d := &handlerstest.Backend{}
	h := d.Handlers()
	var s *web.Server
	webtest.Start(t, webtest.Setup{Register: func(server *web.Server) { s = server; h.Register(server) }, Chrome: h.Chrome})
	document := describe(t, s.Endpoints())
	if err := document.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	// One line for each path, and for most schemas: no text of JSON has such quotation marks.
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`},"/`), []byte("},\n\"/")), []byte(`}},"`), []byte("}},\n\""))
	wantFile(t, "openapi.json", append(text, '\n'), indented)
	for _, route := range s.Routes() {
		if route.Method == http.MethodPost && !strings.HasPrefix(route.Path, web.APIPrefix) && pageActions[route.Path] == nil {
			t.Errorf("pageActions does not say how POST %s is done by the API and in a shell", route.Path)
		}
	}
	wantFile(t, "../docs/api-endpoints.md", table(t, s.Endpoints()), func(text []byte) string { return string(text) })
}

// indented returns JSON with a line for each value.
func indented(text []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		return string(text)
	}
	return b.String()
}

// wantFile checks a file, or writes it. A difference is shown between what readable returns.
func wantFile(t *testing.T, name string, want []byte, readable func([]byte) string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (-file +want); run make generate:\n%s", name, gocmp.Diff(readable(got), readable(want)))
	}
}

// parameterOf matches the parameters of a path.
var parameterOf = regexp.MustCompile(`:(\w+)`)

// describe returns the description of endpoints.
func describe(t *testing.T, endpoints []web.Endpoint) *openapi3.T {
	document := &openapi3.T{
		OpenAPI: "3.0.3", Info: &openapi3.Info{Title: "Kuota", Version: "v1", Description: "What the pages of the console show and do. Errors are RFC 9457."},
		Servers:    openapi3.Servers{{URL: web.APIPrefix}},
		Paths:      openapi3.NewPaths(),
		Components: &openapi3.Components{Schemas: openapi3.Schemas{}, SecuritySchemes: openapi3.SecuritySchemes{"token": {Value: &openapi3.SecurityScheme{Type: "http", Scheme: "bearer"}}}},
		Security:   openapi3.SecurityRequirements{{"token": []string{}}},
	}
	schemas := document.Components.Schemas
	resources := crdSchemas(t, schemas)
	schema := func(value any) *openapi3.SchemaRef {
		if name, ok := resources[reflect.TypeOf(value)]; ok {
			return openapi3.NewSchemaRef("#/components/schemas/"+name, schemas[name].Value)
		}
		ref, err := openapi3gen.NewSchemaRefForValue(value, schemas, openapi3gen.SchemaCustomizer(func(_ string, of reflect.Type, _ reflect.StructTag, schema *openapi3.Schema) error {
			for of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			switch name, ok := resources[of]; {
			case ok:
				*schema = openapi3.Schema{AllOf: openapi3.SchemaRefs{openapi3.NewSchemaRef("#/components/schemas/"+name, schemas[name].Value)}}
			case of == reflect.TypeFor[json.Number]():
				*schema = openapi3.Schema{Type: &openapi3.Types{openapi3.TypeNumber}}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	problem := openapi3.NewResponse().WithDescription("What is wrong, and what to do")
	problem.Content = openapi3.Content{"application/problem+json": openapi3.NewMediaType().WithSchemaRef(schema(web.Problem{}))}
	for _, e := range endpoints {
		operation := openapi3.NewOperation()
		operation.Summary = e.Summary
		for _, match := range parameterOf.FindAllStringSubmatch(e.Path, -1) {
			operation.AddParameter(openapi3.NewPathParameter(match[1]).WithSchema(openapi3.NewStringSchema()))
		}
		for _, q := range e.Query {
			operation.AddParameter(openapi3.NewQueryParameter(q.Name).WithDescription(q.About).WithSchema(openapi3.NewStringSchema()))
		}
		if e.Keyed {
			operation.AddParameter(openapi3.NewHeaderParameter("Idempotency-Key").WithDescription("the same request with the same key changes nothing twice").WithSchema(openapi3.NewStringSchema()))
		}
		if e.Body != nil {
			body := openapi3.NewRequestBody().WithJSONSchemaRef(schema(e.Body))
			body.Required = true
			operation.RequestBody = &openapi3.RequestBodyRef{Value: body}
		}
		answer := openapi3.NewResponse().WithDescription(e.Summary)
		if e.Answer != nil {
			answer = answer.WithJSONSchemaRef(schema(e.Answer))
		} else {
			answer.Content = openapi3.NewContentWithSchema(openapi3.NewStringSchema(), []string{"text/plain"})
		}
		operation.Responses = openapi3.NewResponses(
			openapi3.WithStatus(cmp.Or(e.Status, http.StatusOK), &openapi3.ResponseRef{Value: answer}),
			openapi3.WithName("default", problem))
		document.AddOperation(parameterOf.ReplaceAllString(e.Path, "{$1}"), e.Method, operation)
	}
	return document
}

// crdSchemas adds the schemas of the custom resources, and returns their names by Go type.
func crdSchemas(t *testing.T, schemas openapi3.Schemas) map[reflect.Type]string {
	names := map[reflect.Type]string{reflect.TypeFor[v1alpha1.ComputeAllocation](): "ComputeAllocation", reflect.TypeFor[v1alpha1.ClusterPolicy](): "ClusterPolicy", reflect.TypeFor[v1alpha1.Department](): "Department"}
	files, err := crds.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := crds.Files.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if crd.Spec.Names.Kind != name {
				continue
			}
			encoded, err := json.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
			if err != nil {
				t.Fatal(err)
			}
			schema := &openapi3.Schema{}
			if err := json.Unmarshal(encoded, schema); err != nil {
				t.Fatal(err)
			}
			withoutExtensions(schema)
			schemas[name] = &openapi3.SchemaRef{Value: schema}
		}
	}
	return names
}

// withoutExtensions removes what only Kubernetes reads of a schema.
func withoutExtensions(s *openapi3.Schema) {
	s.Extensions = nil
	for _, below := range s.Properties {
		withoutExtensions(below.Value)
	}
	if s.Items != nil {
		withoutExtensions(s.Items.Value)
	}
	if s.AdditionalProperties.Schema != nil {
		withoutExtensions(s.AdditionalProperties.Schema.Value)
	}
}

// pageActions has for each form of a page what it does, the endpoint, and the command; - where there
// is none yet.
var pageActions = map[string][]string{
	"/teams/:team/submit":                  {"submit a task", "POST /teams/:team/tasks", "kuota run, kuota submit"},
	"/teams/:team/manifest":                {"submit a manifest", "POST /teams/:team/tasks", "kuota submit -f"},
	"/teams/:team/submit/service":          {"start an inference service", "-", "kubectl apply, with the manifest of the page"},
	"/teams/:team/submit/notebook":         {"start a notebook", "-", "kubectl apply, with the manifest of the page"},
	"/teams/:team/templates":               {"keep and delete templates", "POST /teams/:team/templates", "kuota template save, list, show, delete"},
	"/tasks/:namespace/:kind/:name/stop":   {"stop a task", "POST /tasks/:namespace/:kind/:name/stop", "kuota stop"},
	"/tasks/:namespace/:kind/:name/resume": {"resume a task", "POST /tasks/:namespace/:kind/:name/resume", "kuota resume"},
	"/tasks/:namespace/:kind/:name/front":  {"move a task to the front", "POST /tasks/:namespace/:kind/:name/front", "kuota front"},
	"/tasks/:namespace/:kind/:name/class":  {"change its priority class", "POST /tasks/:namespace/:kind/:name/class", "kuota class"},
	"/tasks/:namespace/:kind/:name/scale":  {"scale a service", "POST /tasks/:namespace/:kind/:name/scale", "kuota resize --replicas"},
	"/tasks/:namespace/:kind/:name/resize": {"resize an elastic task", "POST /tasks/:namespace/:kind/:name/resize", "kuota resize"},
	"/tasks/:namespace/:kind/:name/delete": {"delete a task", "DELETE /tasks/:namespace/:kind/:name", "kuota delete"},
	"/tasks/many":                          {"stop, resume, delete, submit again or change the class of many tasks", "POST /tasks/many", "kuota stop, resume, delete, class"},
	"/policies/allocations/new":            {"create an allocation", "POST /allocations", "kuota allocation create"},
	"/policies/allocations/:name/edit":     {"change an allocation", "PUT /allocations/:name", "kuota allocation edit"},
	"/policies/allocations/:name/hold":     {"hold or drain a queue", "POST /allocations/:name/hold", "kuota allocation hold, drain"},
	"/policies/allocations/:name/resume":   {"resume a queue", "POST /allocations/:name/resume", "kuota allocation resume"},
	"/policies/allocations/:name/delete":   {"delete an allocation", "DELETE /allocations/:name", "kuota allocation delete"},
	"/policies/many":                       {"hold, resume, weigh, move and delete many allocations", "POST /allocations/many", "kuota allocation hold, resume, weight, move, delete"},
	"/policies/import":                     {"import teams and policies", "-", "kuota import --apply"},
	"/policies/adopt":                      {"adopt ClusterQueues", "-", "kuota adopt"},
	"/policies/cluster/edit":               {"change the cluster policy", "PUT /policy", "kuota policy edit"},
	"/policies/cluster/try-again":          {"apply Kueue's configuration again", "POST /policy/try-again", "kuota policy try-again"},
	"/departments/new":                     {"create a department", "POST /departments", "kuota department create"},
	"/departments/:name/edit":              {"change a department", "PUT /departments/:name", "kuota department edit"},
	"/departments/:name/delete":            {"delete a department", "DELETE /departments/:name", "kuota department delete"},
	"/instances/pools":                     {"change pools", "PUT /policy", "kuota policy edit -f"},
	"/usage/prices":                        {"change prices", "PUT /policy", "kuota policy edit -f"},
	"/alerts/rules":                        {"change alert rules and receivers", "PUT /policy", "kuota policy edit -f"},
	"/alerts":                              {"silence alerts, test receivers", "POST /alerts/silences", "kuota alerts silence, end, test"},
	"/notices":                             {"choose notices about own tasks", "PUT /notices", "kuota notices"},
	"/auth/logout":                         {"sign out", "-", "kuota logout"},
}

// table returns docs/api-endpoints.md.
func table(t *testing.T, endpoints []web.Endpoint) []byte {
	var b bytes.Buffer
	b.WriteString("# Endpoints of the API\n\n<!-- Generated by handlers/openapi_test.go: make generate -->\n\nAll are below `" + web.APIPrefix + "`. [api.md](api.md) says who may call them; `/api/openapi.json` has all fields.\n\n| endpoint | does | query |\n|---|---|---|\n")
	sorted := slices.SortedFunc(slices.Values(endpoints), func(x, y web.Endpoint) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
	for _, e := range sorted {
		var query []string
		for _, q := range e.Query {
			query = append(query, "`"+q.Name+"`")
		}
		b.WriteString("| `" + e.Method + " " + parameterOf.ReplaceAllString(e.Path, "{$1}") + "` | " + e.Summary + " | " + strings.Join(query, ", ") + " |\n")
	}
	b.WriteString("\n" + strconv.Itoa(len(endpoints)) + " endpoints.\n\n## What pages do\n\nEach form of a page, with its endpoint and its command; - where there is none yet.\n\n| form | does | endpoint | command |\n|---|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(pageActions)) {
		action := pageActions[path]
		if endpoint := action[1]; endpoint != "-" && !slices.ContainsFunc(endpoints, func(e web.Endpoint) bool { return e.Method+" "+e.Path == endpoint }) {
			t.Errorf("there is no endpoint %s", endpoint)
		}
		b.WriteString("| `" + parameterOf.ReplaceAllString(path, "{$1}") + "` | " + action[0] + " | " + parameterOf.ReplaceAllString(action[1], "{$1}") + " | " + action[2] + " |\n")
	}
	return b.Bytes()
}
