package handlers_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
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
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, "openapi.json", append(text, '\n'))
	wantFile(t, "../docs/api-endpoints.md", table(s.Endpoints()))
}

func wantFile(t *testing.T, name string, want []byte) {
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
	if diff := gocmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("%s (-file +want); run make generate:\n%s", name, diff)
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
		if e.Method == http.MethodPost {
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
	names := map[reflect.Type]string{reflect.TypeFor[v1alpha1.ComputeAllocation](): "ComputeAllocation", reflect.TypeFor[v1alpha1.ClusterPolicy](): "ClusterPolicy"}
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

// table returns docs/api-endpoints.md.
func table(endpoints []web.Endpoint) []byte {
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
	b.WriteString("\n" + strconv.Itoa(len(endpoints)) + " endpoints.\n")
	return b.Bytes()
}
