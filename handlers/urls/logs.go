package urls

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LogTemplate is the address of an external log system, with placeholders. The zero
// value is none.
type LogTemplate string

// LogSource is what a link to an external log system is about.
type LogSource struct {
	Namespace, Kind, Task string
	Pod, Container        string    // empty for all of the task
	From, To              time.Time // when the task was submitted, and when it ended; To is now for one that has not
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// logPlaceholders are the placeholders of a LogTemplate.
var logPlaceholders = map[string]func(LogSource) string{
	"{namespace}": func(s LogSource) string { return s.Namespace },
	"{kind}":      func(s LogSource) string { return strings.ToLower(s.Kind) }, // as in addresses of tasks
	"{task}":      func(s LogSource) string { return s.Task },
	// The names of a task's pods begin with that of the task, so that a template with a
	// prefix match finds one pod or all.
	"{pod}": func(s LogSource) string {
		if s.Pod == "" {
			return s.Task
		}
		return s.Pod
	},
	"{container}": func(s LogSource) string { return s.Container },
	"{from}":      func(s LogSource) string { return strconv.FormatInt(s.From.UnixMilli(), 10) },
	"{to}":        func(s LogSource) string { return strconv.FormatInt(s.To.UnixMilli(), 10) },
}

// ParseLogTemplate checks a template. Placeholders must come after the host, so that
// no name of an object leads elsewhere.
func ParseLogTemplate(text string) (LogTemplate, error) {
	if text == "" {
		return "", nil
	}
	for _, name := range placeholder.FindAllString(text, -1) {
		if logPlaceholders[name] == nil {
			return "", fmt.Errorf("has the unknown placeholder %s: use {namespace}, {kind}, {task}, {pod}, {container}, {from} and {to}, and write other braces as %%7B and %%7D", name)
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return "", errors.New("has a single brace: write braces that belong to no placeholder as %7B and %7D")
	}
	address, err := url.Parse(placeholder.ReplaceAllString(text, "x"))
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" || address.User != nil {
		return "", errors.New("write it as https://host/path?query")
	}
	if prefix := address.Scheme + "://" + address.Host; !strings.HasPrefix(text, prefix+"/") && !strings.HasPrefix(text, prefix+"?") {
		return "", errors.New("has a placeholder in its host, or none of / and ? after it")
	}
	return LogTemplate(text), nil
}

// URL returns the address of the logs of a source; empty without a template.
func (t LogTemplate) URL(s LogSource) string {
	return placeholder.ReplaceAllStringFunc(string(t), func(name string) string {
		return url.QueryEscape(logPlaceholders[name](s))
	})
}

// Host returns the host of the log system, for the label of a link.
func (t LogTemplate) Host() string {
	address, err := url.Parse(placeholder.ReplaceAllString(string(t), "x"))
	if err != nil {
		return ""
	}
	return address.Hostname()
}
