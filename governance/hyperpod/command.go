package hyperpod

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance/document"
)

// operations are the calls whose options are read.
var operations = []string{"create-compute-quota", "update-compute-quota", "create-cluster-scheduler-config", "update-cluster-scheduler-config"}

// options are those of the calls, by the field that they set.
var options = map[string]string{
	"--name": "Name", "--description": "Description", "--cluster-arn": "ClusterArn", "--tags": "Tags",
	"--compute-quota-config": "ComputeQuotaConfig", "--compute-quota-target": "ComputeQuotaTarget", "--activation-state": "ActivationState",
	"--compute-quota-id": "ComputeQuotaId", "--target-version": "TargetVersion",
	"--scheduler-config": "SchedulerConfig", "--cluster-scheduler-config-id": "ClusterSchedulerConfigId",
}

// structured are the fields whose value is no plain text.
var structured = []string{"ComputeQuotaConfig", "ComputeQuotaTarget", "SchedulerConfig", "Tags"}

// IsCommand tells whether a text is a call of the AWS CLI, or the options of
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

// Commands reads calls of the AWS CLI as the objects that they send.
func ParseCommands(text string) (objects []*document.Node, wrong document.Problems) {
	words, ok := split(text)
	if !ok {
		wrong.Add("", "a quotation mark is missing in the command, so nothing was imported")
		return nil, wrong
	}
	for i := 0; i < len(words); i++ {
		word, value, inOne := strings.Cut(words[i], "=")
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
		if !inOne && strings.HasPrefix(word, "--") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++
			value, inOne = words[i], true
		}
		switch {
		case field == "" || len(objects) == 0:
			wrong.Add("", "argument %s was ignored", document.Quote(word))
		case !inOne:
			wrong.Add(field, "%s has no value", word)
		default:
			set(objects[len(objects)-1], field, value, &wrong)
		}
	}
	return objects, wrong
}

// set gives an object the value of an option.
func set(object *document.Node, field, value string, wrong *document.Problems) {
	node := &document.Node{Kind: document.Text, Text: value, Untyped: true}
	switch begins := strings.TrimSpace(value); {
	case !slices.Contains(structured, field):
	case strings.HasPrefix(begins, "file:"):
		wrong.Add(field, "refers to a file; paste its content instead")
		return
	case strings.HasPrefix(begins, "{") || strings.HasPrefix(begins, "["):
		read, told := document.Read([]byte(value))
		if len(read) != 1 || len(told) > 0 {
			wrong.Add(field, "not valid JSON; ignored")
			return
		}
		node = read[0]
	default:
		s := shorthand{rest: begins}
		if node = s.fields(0, ""); s.broken || s.rest != "" {
			wrong.Add(field, "not valid shorthand syntax of the AWS CLI; ignored")
			return
		}
	}
	if object.Has(field) {
		wrong.Add(field, "is set twice; the first is used")
		return
	}
	object.Fields = append(object.Fields, document.Field{Name: field, Node: node})
}

// split takes a command apart as a shell does; ok is false where a quotation
// does not end.
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
