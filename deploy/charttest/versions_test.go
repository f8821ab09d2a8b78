package charttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	crdcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// oldestEnvironment returns the CEL environment in which the oldest Kubernetes of
// Chart.yaml compiles new expressions: that of the minor version before it, so that
// an older API server of the same cluster can read them.
func oldestEnvironment(t *testing.T) (*environment.EnvSet, *version.Version) {
	t.Helper()
	chart, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	oldest, err := version.ParseGeneric(strings.TrimSuffix(strings.TrimPrefix(chart.Metadata.KubeVersion, ">="), "-0"))
	if err != nil {
		t.Fatal(err)
	}
	return environment.MustBaseEnvSet(version.MajorMinor(oldest.Major(), oldest.Minor()-1)), oldest
}

// expression is a CEL expression of an admission policy.
type expression struct {
	name, text string
	returns    *cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.returns} }

// The oldest Kubernetes compiles every expression of the admission policies.
func TestPoliciesCompileInTheOldestKubernetes(t *testing.T) {
	env, oldest := oldestEnvironment(t)
	release := releases["legacy"]
	release.Kubernetes = "v" + oldest.String()
	objects := render(t, release)
	policies := find[*admissionv1.ValidatingAdmissionPolicy](objects)
	if len(policies) == 0 {
		t.Fatal("there are no policies")
	}
	expressions := 0
	for _, p := range policies {
		compiler, err := plugincel.NewCompositedCompiler(env)
		if err != nil {
			t.Fatal(err)
		}
		options := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
		check := func(e expression, result plugincel.CompilationResult) {
			expressions++
			if result.Error != nil {
				t.Errorf("%s: %s: %v", p.Name, e.text, result.Error)
			}
		}
		compile := func(text string, returns *cel.Type) {
			e := expression{text: text, returns: returns}
			check(e, compiler.CompileCELExpression(e, options, environment.NewExpressions))
		}
		for _, v := range p.Spec.Variables {
			e := expression{v.Name, v.Expression, cel.AnyType}
			check(e, compiler.CompileAndStoreVariable(e, options, environment.NewExpressions))
		}
		for _, c := range p.Spec.MatchConditions {
			compile(c.Expression, cel.BoolType)
		}
		for _, v := range p.Spec.Validations {
			compile(v.Expression, cel.BoolType)
			if v.MessageExpression != "" {
				compile(v.MessageExpression, cel.StringType)
			}
		}
	}
	if expressions < len(policies) {
		t.Errorf("%d expressions in %d policies", expressions, len(policies))
	}
}

// The oldest Kubernetes compiles every rule of the CRDs.
func TestCRDsCompileInTheOldestKubernetes(t *testing.T) {
	env, _ := oldestEnvironment(t)
	files, err := filepath.Glob(filepath.Join(Root(), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	rules := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		for i := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := schema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			rules += compileRules(t, env, crd.Name, structural, true)
		}
	}
	if rules == 0 {
		t.Error("there are no rules")
	}
}

// compileRules compiles the rules of a schema and of all schemas in it, and returns
// their number.
func compileRules(t *testing.T, env *environment.EnvSet, path string, s *schema.Structural, root bool) (rules int) {
	if len(s.XValidations) > 0 {
		results, err := crdcel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, env, crdcel.NewExpressionsEnvLoader())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for i, result := range results {
			rules++
			if result.Error != nil {
				t.Errorf("%s: %s: %v", path, s.XValidations[i].Rule, result.Error)
			}
			if result.MessageExpressionError != nil {
				t.Errorf("%s: %s: %v", path, s.XValidations[i].MessageExpression, result.MessageExpressionError)
			}
		}
	}
	for name := range s.Properties {
		property := s.Properties[name]
		rules += compileRules(t, env, path+"."+name, &property, false)
	}
	if s.Items != nil {
		rules += compileRules(t, env, path+"[]", s.Items, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		rules += compileRules(t, env, path+"{}", s.AdditionalProperties.Structural, false)
	}
	return rules
}
