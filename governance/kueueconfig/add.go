package kueueconfig

import (
	"errors"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"

	yaml "go.yaml.in/yaml/v3"
)

const (
	integrations = "integrations"
	resources    = "resources"
	frameworks   = "frameworks"
	exclude      = "excludeResourcePrefixes"
)

// Addition is what a person may want in Kueue's configuration beside what a
// policy decides. The console never writes it by itself.
type Addition struct {
	Frameworks []string        // integrations that are off
	Exclude    []string        // resources, by the start of their names, that Kueue does not count
	Unexclude  []string        // of Excluded, those that go, so that Kueue counts again what they left out
	Gates      map[string]bool // of those that Gates tells of
}

// Add shows how to add to Kueue's configuration: Wanted has the text, the
// arguments and the patch. What is there already is not added again, and what
// is gone is not taken out.
func Add(seen Current, more Addition) (Desired, error) {
	wanted := Desired{Text: seen.Text, Args: seen.Args, Version: versionOf(seen.Image).text}
	d, err := read(seen.Text)
	if err != nil {
		return wanted, err
	}
	args, err := argsOf(seen.Args, d)
	if err != nil {
		return wanted, err
	}
	added := subtract(more.Frameworks, Integrations(seen.Text))
	if list := child(d.section(integrations), frameworks); len(added) > 0 && (list == nil || len(list.Content) == 0) {
		added = append([]string{BatchJob}, subtract(added, []string{BatchJob})...) // which Kueue has until the list names another
	}
	if err := d.extend(integrations, frameworks, added); err != nil {
		return wanted, err
	}
	if err := d.extend(resources, exclude, subtract(more.Exclude, ExcludedPrefixes(seen.Text))); err != nil {
		return wanted, err
	}
	if err := d.shorten(resources, exclude, more.Unexclude); err != nil {
		return wanted, err
	}
	d.setGates(args, more.Gates)
	after, err := d.result(integrations, resources)
	if err != nil {
		return wanted, err
	}
	if len(subtract(Integrations(seen.Text), Integrations(after))) > 0 || !slices.Equal(subtract(append(ExcludedPrefixes(seen.Text), more.Exclude...), more.Unexclude), subtract(ExcludedPrefixes(after), nil)) {
		return wanted, errUnsafe() // such as entries that a merge key brought
	}
	wanted.Text, wanted.Args = after, args.list
	wanted.ConfigChanged = after != seen.Text
	wanted.ArgsChanged = !slices.Equal(args.list, seen.Args)
	wanted.Patch = patch(seen, wanted)
	return wanted, nil
}

// extend appends to a list of a section; both are made where they are missing.
func (d *document) extend(name, key string, values []string) error {
	if len(values) == 0 {
		return nil
	}
	section, list, err := d.list(name, key)
	if err != nil {
		return err
	}
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	}
	for _, value := range values {
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
	}
	if section == nil {
		section = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if child(section, key) != list {
		setNode(section, key, list)
	}
	return d.rewrite(name, section)
}

// shorten takes values out of a list of a section.
func (d *document) shorten(name, key string, values []string) error {
	if len(values) == 0 {
		return nil
	}
	section, list, err := d.list(name, key)
	if err != nil || list == nil {
		return err
	}
	before := len(list.Content)
	list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool {
		var value string
		return n.Decode(&value) == nil && slices.Contains(values, value)
	})
	if len(list.Content) == before {
		return nil
	}
	return d.rewrite(name, section)
}

// list finds a list of a section. Both are nil where they are missing or null,
// which is the same to Kueue.
func (d *document) list(name, key string) (section, list *yaml.Node, err error) {
	section = d.section(name)
	if section != nil && section.Kind != yaml.MappingNode {
		return nil, nil, invalid(nil, "In Kueue's configuration, %s is not a plain mapping. Write its keys out.", name)
	}
	list = child(section, key)
	switch {
	case list == nil || list.Tag == "!!null":
		return section, nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, nil, invalid(nil, "In Kueue's configuration, %s.%s is not a plain list. Write its entries out.", name, key)
	}
	return section, list, nil
}

// rewrite puts a section's lines in the place of what stands there.
func (d *document) rewrite(name string, section *yaml.Node) error {
	b, err := encode(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, section,
	}})
	if err != nil {
		return err
	}
	d.replace(name, strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n"))
	return nil
}

// without are the values that others lack, each once, in their order.
func subtract(values, others []string) []string {
	var left []string
	for _, value := range values {
		if !slices.Contains(others, value) && !slices.Contains(left, value) {
			left = append(left, value)
		}
	}
	return left
}

// Excluded are the starts of names of resources that Kueue does not count.
func ExcludedPrefixes(text string) []string {
	var file struct {
		Resources struct {
			Exclude []string `yaml:"excludeResourcePrefixes"`
		} `yaml:"resources"`
	}
	_ = yaml.Unmarshal([]byte(text), &file) // what is no YAML is told where it is read as a whole
	return file.Resources.Exclude
}

// Counts tells whether Kueue counts a resource that queues do not name: a task
// that asks for such a one waits for ever. What is left out, replaced by others,
// or let through in general is not counted.
func CountsResource(text, resource string) bool {
	var file struct {
		Resources struct {
			Strategy        string `yaml:"quotaCheckStrategy"`
			Transformations []struct {
				Input    string `yaml:"input"`
				Strategy string `yaml:"strategy"`
			} `yaml:"transformations"`
		} `yaml:"resources"`
	}
	_ = yaml.Unmarshal([]byte(text), &file)
	for _, t := range file.Resources.Transformations {
		if t.Input == resource && t.Strategy == "Replace" { // by default what is translated is retained as well
			return false
		}
	}
	return file.Resources.Strategy != "IgnoreUndeclared" &&
		!slices.ContainsFunc(ExcludedPrefixes(text), func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

// Sentence is an error of this package for a person.
func ErrorMessage(err error) string {
	var ours *governance.Error
	if errors.As(err, &ours) {
		return ours.Message
	}
	return err.Error()
}
