package rejection

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Fields returns what a schema, a webhook or an admission policy rejects in an
// object, each with its path in that object if the error names one. ok is false
// if err is no such rejection.
//
// The schema reports each path separately (422). A webhook reports everything in
// one text (403): `admission webhook "…" denied the request: path: Invalid
// value: …: reason`, or several of these in brackets. An admission policy
// reports a text without a path.
func Fields(err error) (fields []governance.FieldError, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, false
	}
	message := status.Status().Message
	if match := denied.FindStringIndex(message); match != nil {
		for _, text := range split(message[match[1]:]) {
			fields = append(fields, parse(text))
		}
		return fields, true
	}
	var ours *governance.Error
	if apierrors.IsInvalid(err) && errors.As(cluster.Translate("try", err), &ours) {
		for _, field := range ours.Fields {
			if strings.Contains(field.Message, "some validation rules were not checked") {
				continue // a consequence of the other errors
			}
			if field.Path == "<nil>" { // a rule about the whole object
				field.Path = ""
			}
			fields = append(fields, field)
		}
		return fields, true
	}
	return nil, false
}

var (
	// denied matches up to the text of a webhook or an admission policy.
	denied = regexp.MustCompile(`denied (?:the )?request: `)
	// path matches the field path at the start of a text.
	path = regexp.MustCompile(`^((?:spec|metadata)(?:\.[A-Za-z0-9]+|\[[^\]]*\])*): `)
	// next matches the separator between two texts and the path of the second.
	next = regexp.MustCompile(`, (?:spec|metadata)[.\[][^ ]*: `)
	// cause matches the error type and the value that Kubernetes writes before
	// the reason.
	cause = regexp.MustCompile(`^(?:Invalid value|Unsupported value|Duplicate value|Required value|Forbidden|Too many|Too long)(?:: (?:"(?:[^"\\]|\\.)*"|[^ :]+))?: `)
)

// split returns the texts of a list in brackets; a text without brackets is one.
func split(text string) []string {
	inner, bracket := strings.CutPrefix(text, "[")
	if !bracket || !strings.HasSuffix(inner, "]") {
		return []string{text}
	}
	inner = strings.TrimSuffix(inner, "]")
	var texts []string
	for {
		at := next.FindStringIndex(inner)
		if at == nil {
			return append(texts, inner)
		}
		texts = append(texts, inner[:at[0]])
		inner = inner[at[0]+len(", "):]
	}
}

// parse separates the field path of a text from its reason.
func parse(text string) governance.FieldError {
	match := path.FindStringSubmatch(text)
	if match == nil {
		return governance.FieldError{Message: text}
	}
	return governance.FieldError{Path: match[1], Message: cause.ReplaceAllString(text[len(match[0]):], "")}
}

// Translate translates an error of a write as cluster.Translate does. A
// rejection becomes governance.Invalid with the rejected fields: it is invalid
// input, and not a missing permission.
func Translate(op string, err error) error {
	fields, ok := Fields(err)
	if !ok {
		return cluster.Translate(op, err)
	}
	return &governance.Error{Kind: governance.Invalid, Op: op, Message: "The API server rejected it.", Fields: slices.Compact(fields), Err: err}
}

// WebhookUnavailable reports whether err means that an admission webhook did not
// answer, so that the write was not checked.
func WebhookUnavailable(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
