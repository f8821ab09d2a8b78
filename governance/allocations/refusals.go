package allocations

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refusal says what the API server, or whoever has a say in admission, has
// against an object: each thing with its place in that object, where one is
// told. ok is false when err is nothing of that kind.
//
// The schema tells places apart (422). A webhook tells all in one text (403),
// as `admission webhook "…" denied the request: place: Invalid value: …: why`,
// several in brackets. An admission policy tells a text only.
func Refusal(err error) (wrong []governance.FieldError, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, false
	}
	message := status.Status().Message
	if match := denied.FindStringIndex(message); match != nil {
		for _, text := range several(message[match[1]:]) {
			wrong = append(wrong, placed(text))
		}
		return wrong, true
	}
	var ours *governance.Error
	if apierrors.IsInvalid(err) && errors.As(cluster.Translate("try", err), &ours) {
		for _, field := range ours.Fields {
			if strings.Contains(field.Message, "some validation rules were not checked") {
				continue // because of the rest, which is told
			}
			if field.Path == "<nil>" { // a rule about all of it
				field.Path = ""
			}
			wrong = append(wrong, field)
		}
		return wrong, true
	}
	return nil, false
}

var (
	// denied ends where the text of a webhook or an admission policy begins.
	denied = regexp.MustCompile(`denied (?:the )?request: `)
	// place begins a text that says where it belongs.
	place = regexp.MustCompile(`^((?:spec|metadata)(?:\.[A-Za-z0-9]+|\[[^\]]*\])*): `)
	// next divides several texts.
	next = regexp.MustCompile(`, (?:spec|metadata)[.\[][^ ]*: `)
	// cause is how Kubernetes begins its sentences about a value.
	cause = regexp.MustCompile(`^(?:Invalid value|Unsupported value|Duplicate value|Required value|Forbidden|Too many|Too long)(?:: (?:"(?:[^"\\]|\\.)*"|[^ :]+))?: `)
)

// several takes the texts of a list in brackets apart.
func several(text string) []string {
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

// placed takes a text's place off its front.
func placed(text string) governance.FieldError {
	at := place.FindStringSubmatch(text)
	if at == nil {
		return governance.FieldError{Message: text}
	}
	return governance.FieldError{Path: at[1], Message: cause.ReplaceAllString(text[len(at[0]):], "")}
}

// refused translates an error of writing an allocation. What an admission
// policy or webhook has against it is wrong input, and not a lack of rights.
func refused(op string, err error) error {
	wrong, ok := Refusal(err)
	if !ok {
		return cluster.Translate(op, err)
	}
	wrong = slices.Compact(wrong)
	return &governance.Error{Kind: governance.Invalid, Op: op, Message: "The API server rejected it.", Fields: wrong, Err: err}
}

// Silent tells whether an object could not be tried because a webhook that has
// a say in it does not answer.
func Silent(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
