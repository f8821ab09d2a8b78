package schema

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"kuota.dev/kuota/deploy/crds"
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// A Kind is one of Kuota's custom resources.
type Kind struct {
	compiled func() *compiled
	name     string // that an object of the kind can have
}

// The kinds. Their CRDs are compiled when they are first used.
var (
	ClusterPolicy     = newKind("kuota.dev_clusterpolicies.yaml", v1alpha1.ClusterPolicyName)
	ComputeAllocation = newKind("kuota.dev_computeallocations.yaml", "team")
	Department        = newKind("kuota.dev_departments.yaml", "department")
)

// compiled is a CRD whose rules are compiled.
type compiled struct {
	schema *structural.Structural
	values validation.SchemaValidator
	rules  *cel.Validator
}

func newKind(file, name string) Kind {
	return Kind{name: name, compiled: sync.OnceValue(func() *compiled {
		c, err := compile(file)
		if err != nil { // the CRD is part of the program
			panic(fmt.Sprintf("schema: %s: %v", file, err))
		}
		return c
	})}
}

func compile(file string) (*compiled, error) {
	text, err := crds.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	var props apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, &props, nil); err != nil {
		return nil, err
	}
	var c compiled
	if c.schema, err = structural.NewStructural(props.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	c.values, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema)
	c.rules = cel.NewValidator(c.schema, true, celconfig.PerCallLimit)
	return &c, err
}

// Validate returns what the CRD rejects in an object, with the path of each value in it.
// old is the saved object, whose values the API server accepts unchanged; nil for none.
func (k Kind) Validate(object, old client.Object) governance.FieldErrors {
	c := k.compiled()
	now := c.decode(object)
	if old == nil {
		return c.validate(now, nil)
	}
	return c.validate(now, c.decode(old))
}

// decode returns an object as JSON values, with defaults.
func (c *compiled) decode(object client.Object) map[string]any {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil { // API types always convert
		panic(fmt.Sprintf("schema: decode %T: %v", object, err))
	}
	delete(values, "status")
	compact(values) // a required field that is nil is missing
	return c.withDefaults(values)
}

// withDefaults returns a copy of values with the defaults of the CRD.
func (c *compiled) withDefaults(values map[string]any) map[string]any {
	values = runtime.DeepCopyJSON(values)
	defaulting.Default(values, c.schema)
	return values
}

func (c *compiled) validate(now, old map[string]any) (errs governance.FieldErrors) {
	checkText(&errs, now, nil)
	var all field.ErrorList
	if old == nil {
		all = validation.ValidateCustomResource(nil, now, c.values)
		all = append(all, listtype.ValidateListSetsAndMaps(nil, c.schema, now)...)
		rules, _ := c.rules.Validate(context.Background(), nil, c.schema, now, nil, celconfig.RuntimeCELCostBudget)
		all = append(all, rules...)
	} else {
		correlated := common.NewCorrelatedObject(now, old, &model.Structural{Structural: c.schema})
		all = validation.ValidateCustomResourceUpdate(nil, now, old, c.values, validation.WithRatcheting(correlated))
		all = append(all, listtype.ValidateListSetsAndMaps(nil, c.schema, now)...)
		rules, _ := c.rules.Validate(context.Background(), nil, c.schema, now, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
		all = append(all, rules...)
	}
	for _, e := range all {
		path := e.Field
		if path == "<nil>" || path == "" { // a rule about the whole object is about its name
			path = "metadata.name"
		}
		if list := c.at(steps(strings.TrimRight(path, "]0123456789["))); e.Type == field.ErrorTypeDuplicate && list != nil && len(list.XListMapKeys) == 1 {
			path += "." + list.XListMapKeys[0]
		}
		errs.Add(path, sentence(e, c.at(steps(path))))
	}
	return errs
}

// checkText reports text that JSON cannot hold: it would be saved with other characters.
func checkText(errs *governance.FieldErrors, value any, path []any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			checkText(errs, field, append(slices.Clone(path), name))
		}
	case []any:
		for i, item := range value {
			checkText(errs, item, append(slices.Clone(path), i))
		}
	case string:
		if !utf8.ValidString(value) {
			errs.Add(text(path), "is not UTF-8 text")
		}
	}
}

// at returns the schema of the value at a path; nil if there is none.
func (c *compiled) at(path []any) *structural.Structural {
	at := c.schema
	for _, step := range path {
		switch step := step.(type) {
		case int:
			at = at.Items
		case string:
			next, ok := at.Properties[step]
			switch {
			case ok:
				at = &next
			case at.AdditionalProperties != nil:
				at = at.AdditionalProperties.Structural
			default:
				at = nil
			}
		}
		if at == nil {
			return nil
		}
	}
	return at
}

// steps splits a path into the names of fields and the indexes of items.
func steps(path string) (all []any) {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		if n, err := strconv.Atoi(part); err == nil {
			all = append(all, n)
		} else {
			all = append(all, part)
		}
	}
	return all
}

// text is the path of steps.
func text(all []any) string {
	var b strings.Builder
	for _, step := range all {
		if n, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", n)
		} else {
			fmt.Fprintf(&b, ".%s", step)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}
