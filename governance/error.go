package governance

import (
	"errors"
	"fmt"
	"strings"
)

// Kind classifies an Error. The web server maps it to a status code.
type Kind int

// The kinds of error.
const (
	Internal    Kind = iota // a defect of Kuota
	Invalid                 // the input is invalid; see Fields
	NotFound                // it does not exist, or may not be seen
	Exists                  // the name is in use
	Conflict                // someone else changed the object in between
	Forbidden               // the user lacks the permission
	Outside                 // the user may see no team
	Unavailable             // the cluster cannot be reached; the same may succeed later
)

// Error is the error type of the domain.
type Error struct {
	Kind    Kind
	Op      string       // the operation, such as "create allocation"; for the log
	Message string       // a sentence for the user: what happened, why, what to do
	Fields  []FieldError // for Invalid
	Err     error        // the cause, for the log only
}

// FieldError is one invalid value.
type FieldError struct {
	// Path is the field of the custom resource, such as
	// spec.quota[0].vCPU or metadata.name.
	Path string
	// Message says what is wrong and what is valid.
	Message string
}

// FieldErrors collects field errors.
type FieldErrors []FieldError

// Add adds an error of the field at path, unless problem is empty.
func (e *FieldErrors) Add(path, problem string) {
	if problem != "" {
		*e = append(*e, FieldError{Path: path, Message: problem})
	}
}

// Addf adds an error of the field at path with a formatted message.
func (e *FieldErrors) Addf(path, format string, args ...any) {
	e.Add(path, fmt.Sprintf(format, args...))
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		fmt.Fprintf(&b, "%s: ", e.Op)
	}
	message := e.Message // a sentence
	if len(e.Fields) > 0 || e.Err != nil {
		message = strings.TrimSuffix(message, ".")
	}
	b.WriteString(message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "; %s: %s", f.Path, f.Message)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err; Internal if it is no Error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// JoinFieldErrors returns all field errors with their paths as one text.
func JoinFieldErrors(fields []FieldError) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Path + ": " + f.Message
	}
	return strings.Join(parts, "; ")
}
