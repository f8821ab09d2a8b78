package schema

import (
	"fmt"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/quota"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patterns are what values with a pattern look like, by the name of the field. Rules
// of CEL have their own messages.
var patterns = map[string]string{
	"currency": "write the currency as three capital letters, such as EUR",
	"from":     "write the beginning as 2026-10-01 or 2026-10-01T12:00:00Z, in UTC",
	"own":      "write prices as 2.50, with up to six decimals",
	"borrowed": "write prices as 2.50, with up to six decimals",
	"vCPU":     "must be a number from 0 to 10,000,000 in steps of 0.001",
	"memory":   "must be from 0 to 10,000,000 GiB with fewer decimals",
	"quantity": "must be a whole number from 0, or from 0 to 10,000,000 GiB with fewer decimals",
	"name":     "is no Kubernetes resource, such as example.com/license",
}

// Empty is the message about a value without content.
const Empty = "is empty"

// sentence returns what is wrong with a value, and what is valid, as governance.FieldError
// words it. s is its schema; nil if it has none.
func sentence(e *field.Error, s *structural.Structural) string {
	bounds := &structural.ValueValidation{}
	if s != nil && s.ValueValidation != nil {
		bounds = s.ValueValidation
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		return "is missing"
	case field.ErrorTypeDuplicate:
		return "is listed twice; remove one"
	case field.ErrorTypeTooLong:
		if bounds.MaxLength != nil {
			return fmt.Sprintf("has more than %s characters", count(*bounds.MaxLength))
		}
	case field.ErrorTypeTooMany:
		if bounds.MaxItems != nil {
			return fmt.Sprintf("has %v entries; at most %s are possible", e.BadValue, count(*bounds.MaxItems))
		}
		if bounds.MaxProperties != nil {
			return fmt.Sprintf("has more than %s entries", count(*bounds.MaxProperties))
		}
	case field.ErrorTypeNotSupported:
		return fmt.Sprintf("is %q; it must be %s", fmt.Sprint(e.BadValue), enum(bounds))
	case field.ErrorTypeTypeInvalid:
		return "has a value of the wrong kind"
	}
	if !strings.Contains(e.Detail, " in body ") { // the message of a rule
		return e.Detail
	}
	name := e.Field[strings.LastIndex(e.Field, ".")+1:]
	switch {
	case bounds.Pattern != "" && patterns[name] != "":
		return patterns[name]
	case bounds.Minimum != nil && bounds.Maximum != nil:
		return fmt.Sprintf("must be a whole number from %s to %s", count(int64(*bounds.Minimum)), count(int64(*bounds.Maximum)))
	case bounds.Minimum != nil:
		return fmt.Sprintf("must be a whole number from %s", count(int64(*bounds.Minimum)))
	case bounds.MinLength != nil || bounds.MinItems != nil || bounds.MinProperties != nil:
		return Empty
	}
	return e.Detail
}

func count(n int64) string { return quota.Thousands(strconv.FormatInt(n, 10)) }

// enum lists the values of an enumeration.
func enum(bounds *structural.ValueValidation) string {
	words := make([]string, len(bounds.Enum))
	for i, value := range bounds.Enum {
		words[i] = fmt.Sprint(value.Object)
	}
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return strings.Join(words, "")
}
