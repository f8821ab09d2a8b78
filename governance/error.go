package governance

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what sort of trouble an Error is, so that each caller can answer
// it in its own way. The web server maps it to a status.
type Kind int

// The kinds of error.
const (
	Internal    Kind = iota // ours; a person can only report it
	Invalid                 // the input is wrong; Fields says where
	NotFound                // it does not exist, or may not be seen
	Exists                  // something of that name is there already
	Conflict                // somebody else changed it in between
	Forbidden               // this person may not do it
	Outside                 // this person may see no team at all
	Unavailable             // the cluster cannot be reached; the same may succeed later
)

// Error is the one error type of the domain.
type Error struct {
	Kind    Kind
	Op      string       // what was being done, such as "create allocation"; for the log
	Message string       // a sentence for the person: what happened, why, what to do
	Fields  []FieldError // for Invalid: what is wrong where
	Err     error        // the cause, for the log only
}

// FieldError is one wrong value.
type FieldError struct {
	// Path is the value's place in the custom resource, such as
	// spec.quota[0].vCPU or metadata.name.
	Path string
	// Message is a sentence that says what is wrong and what would be right.
	Message string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		fmt.Fprintf(&b, "%s: ", e.Op)
	}
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "; %s: %s", f.Path, f.Message)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf tells the kind of err; Internal when it is none of ours.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Sentence joins what is wrong into one text, each with its place.
func JoinFieldErrors(fields []FieldError) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Path + ": " + f.Message
	}
	return strings.Join(parts, "; ")
}
