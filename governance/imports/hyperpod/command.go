package hyperpod

import (
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/spec/document"
)

// operations are the supported operations of the AWS CLI.
var operations = []string{"create-compute-quota", "update-compute-quota", "create-cluster-scheduler-config", "update-cluster-scheduler-config"}

// options maps the options of the operations to the fields that they set.
var options = map[string]string{
	"--name": "Name", "--description": "Description", "--cluster-arn": "ClusterArn", "--tags": "Tags",
	"--compute-quota-config": "ComputeQuotaConfig", "--compute-quota-target": "ComputeQuotaTarget", "--activation-state": "ActivationState",
	"--compute-quota-id": "ComputeQuotaId", "--target-version": "TargetVersion",
	"--scheduler-config": "SchedulerConfig", "--cluster-scheduler-config-id": "ClusterSchedulerConfigId",
}

// structured are the fields whose value is JSON or shorthand.
var structured = []string{"ComputeQuotaConfig", "ComputeQuotaTarget", "SchedulerConfig", "Tags"}

// IsCommand reports whether a text is a command of the AWS CLI, or the options of
// one.
func IsCommand(text string) bool {
	words := strings.Fields(text[:min(len(text), 500)])
	for _, word := range words {
		switch {
		case slices.Contains(operations, word) || options[word] != "":
			return true
		case word != "$" && word != "aws" && word != "sagemaker":
			return false
		}
	}
	return false
}

// continued matches where a line goes on in the next one, in the notation of a shell of
// Unix, of PowerShell or of Windows' command prompt.
var continued = regexp.MustCompile("[ \t]+[\\\\`^][ \t]*\n")

// ParseCommands parses commands of the AWS CLI into the objects that they send.
func ParseCommands(text string) (objects []*document.Node, wrong governance.FieldErrors) {
	words, ok := split(continued.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), " "))
	if !ok {
		wrong.Addf("", "a quotation mark is missing in the command, so nothing was imported")
		return nil, wrong
	}
	for i := 0; i < len(words); i++ {
		word, value, hasValue := strings.Cut(words[i], "=")
		switch {
		case slices.Contains(operations, words[i]) || len(objects) == 0 && options[word] != "":
			objects = append(objects, &document.Node{Kind: document.Object})
			if slices.Contains(operations, words[i]) {
				continue
			}
		case slices.Contains([]string{"$", "aws", "sagemaker", ";", "&&"}, words[i]):
			continue
		}
		field := options[word]
		if !hasValue && strings.HasPrefix(word, "--") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++
			value, hasValue = words[i], true
		}
		switch {
		case field == "" || len(objects) == 0:
			wrong.Addf("", "argument %s was ignored", document.Quote(word))
		case !hasValue:
			wrong.Addf(field, "%s has no value", word)
		default:
			set(objects[len(objects)-1], field, value, &wrong)
		}
	}
	return objects, wrong
}

// set sets a field of an object to the value of an option.
func set(object *document.Node, field, value string, wrong *governance.FieldErrors) {
	node := &document.Node{Kind: document.Text, Text: value, Untyped: true}
	switch trimmed := strings.TrimSpace(value); {
	case !slices.Contains(structured, field):
	case strings.HasPrefix(trimmed, "file:"):
		wrong.Addf(field, "refers to a file; paste its content instead")
		return
	case strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "["):
		nodes, problems := document.Read([]byte(value))
		if len(nodes) != 1 || len(problems) > 0 {
			wrong.Addf(field, "not valid JSON; ignored")
			return
		}
		node = nodes[0]
	default:
		s := shorthand{rest: trimmed}
		if node = s.fields(0, ""); s.invalid || s.rest != "" {
			wrong.Addf(field, "not valid shorthand syntax of the AWS CLI; ignored")
			return
		}
	}
	if object.Has(field) {
		wrong.Addf(field, "is set twice; the first is used")
		return
	}
	object.Fields = append(object.Fields, document.Field{Name: field, Node: node})
}

// split splits a command into words as a shell does. ok is false if a quotation
// mark is missing.
func split(text string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	inside, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			if escaped = false; r != '\n' {
				word.WriteRune(r)
				inside = true
			}
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inside = r, true
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words, quote == 0
}
