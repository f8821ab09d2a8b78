package charttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Copies returns the files of the chart that are copies, with their sources, both
// relative to Root.
func Copies() (map[string]string, error) {
	copies := map[string]string{"deploy/chart/files/kuota.json": "deploy/grafana/kuota.json", "deploy/chart/files/teams.json": "deploy/grafana/teams.json"}
	crds, err := filepath.Glob(filepath.Join(Root(), "deploy", "crds", "*.yaml"))
	for _, file := range crds {
		copies["deploy/chart/files/crds/"+filepath.Base(file)] = "deploy/crds/" + filepath.Base(file)
	}
	return copies, err
}

// rawValues are values with which the chart renders. The raw manifests depend on none
// of them but legacyImpersonation.
const rawValues = `
url: https://kuota.example.com
signIn: {issuer: "https://login.example.com", clientID: kuota}
sessions: {keys: {name: kuota}}
`

const rawNamespace = `# The namespace of the console, its sessions and versions.
apiVersion: v1
kind: Namespace
metadata:
  name: kuota-system
---
`

// RawManifests returns the files of deploy/rbac, by name: the permissions, roles and
// admission policies of the chart, for an installation without Helm.
func RawManifests() (map[string]string, error) {
	release := Release{Name: "kuota", Namespace: "kuota-system", Values: rawValues}
	rendered, err := Render(release)
	if err != nil {
		return nil, err
	}
	release.Values += "legacyImpersonation: true\n"
	legacy, err := Render(release)
	if err != nil {
		return nil, err
	}
	tidy := func(text string) string { return strings.TrimSpace(text) + "\n" }
	manifests := map[string]string{
		"00-namespace.yaml":         rawNamespace + tidy(rendered["templates/serviceaccount.yaml"]),
		"legacy/impersonation.yaml": tidy(legacy["templates/rbac/legacy-impersonation.yaml"]),
	}
	for name, text := range rendered {
		if folder, file := filepath.Split(name); folder == "templates/rbac/" && file != "legacy-impersonation.yaml" {
			manifests[file] = tidy(text)
		}
	}
	return manifests, nil
}

// Value is a value of the chart.
type Value struct{ Path, Default, Comment string }

// Values returns the values of values.yaml in their order. A map is one value if it is
// empty or has no comments inside.
func Values() ([]Value, error) {
	text, err := os.ReadFile(filepath.Join(Root(), "deploy", "chart", "values.yaml"))
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	return valuesOf(document.Content[0], "")
}

func valuesOf(node *yaml.Node, prefix string) (values []Value, err error) {
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		comment := strings.TrimSpace(strings.TrimPrefix(key.HeadComment, "#"))
		if value.Kind == yaml.MappingNode && comment == "" {
			inner, err := valuesOf(value, path+".")
			if err != nil {
				return nil, err
			}
			values = append(values, inner...)
			continue
		}
		if comment == "" || strings.Contains(comment, "\n") {
			return nil, fmt.Errorf("values.yaml: %s needs a comment of one line above", path)
		}
		value.Style |= yaml.FlowStyle
		text, err := yaml.Marshal(flow(value))
		if err != nil {
			return nil, err
		}
		values = append(values, Value{path, strings.TrimSpace(string(text)), comment})
	}
	return values, nil
}

// flow sets the style of a node and its children to that of one line.
func flow(node *yaml.Node) *yaml.Node {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	if node.Kind != yaml.ScalarNode {
		node.Style = yaml.FlowStyle
	}
	for _, child := range node.Content {
		flow(child)
	}
	return node
}

// ValuesTable returns the table of all values in Markdown.
func ValuesTable() (string, error) {
	values, err := Values()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, v := range values {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.Path, v.Default, v.Comment)
	}
	return b.String(), nil
}

// The marks around the generated table.
const (
	tableBegin = "<!-- values: generated from deploy/chart/values.yaml by make generate -->\n"
	tableEnd   = "<!-- end of values -->\n"
)

// ReplaceTable returns text with the generated table between its marks.
func ReplaceTable(text, table string) (string, error) {
	before, rest, ok := strings.Cut(text, tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return "", errors.New("the marks of the table of values are missing")
	}
	return before + tableBegin + table + tableEnd + after, nil
}
