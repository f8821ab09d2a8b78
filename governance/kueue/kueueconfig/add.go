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

// Addition is what an admin may add to Kueue's configuration beside what the
// policy determines. The console never writes it.
type Addition struct {
	Frameworks []string        // integrations to enable
	Exclude    []string        // resource name prefixes to exclude from quota
	Unexclude  []string        // of ExcludedPrefixes, those to remove, so that Kueue counts these resources again
	Gates      map[string]bool // of those that Gates returns
}

// Add returns the configuration with an addition, its arguments and the patch.
// Values that exist are not added again, and missing ones are not removed.
func Add(seen Current, more Addition) (Desired, error) {
	wanted := Desired{Text: seen.Text, Args: seen.Args, Version: versionOf(seen.Image).text}
	d, args, err := parse(seen)
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
		return wanted, errUnsafe() // such as entries of a YAML merge key
	}
	wanted.Text, wanted.Args = after, args.list
	wanted.ConfigChanged = after != seen.Text
	wanted.ArgsChanged = !slices.Equal(args.list, seen.Args)
	wanted.Patch = patch(seen, wanted)
	return wanted, nil
}

// extend appends to a list of a section, and creates both if they are missing.
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

// shorten removes values from a list of a section.
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

// list returns a section and its list. Each is nil if it is missing or null,
// which Kueue treats alike.
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

// rewrite replaces the lines of a section.
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

// subtract returns the values that are not in others, without duplicates, in
// order.
func subtract(values, others []string) []string {
	var left []string
	for _, value := range values {
		if !slices.Contains(others, value) && !slices.Contains(left, value) {
			left = append(left, value)
		}
	}
	return left
}

// ExcludedPrefixes returns the resource name prefixes that Kueue does not
// count.
func ExcludedPrefixes(text string) []string {
	var file struct {
		Resources struct {
			Exclude []string `yaml:"excludeResourcePrefixes"`
		} `yaml:"resources"`
	}
	_ = yaml.Unmarshal([]byte(text), &file) // read reports text that is not YAML
	return file.Resources.Exclude
}

// CountsResource reports whether Kueue counts a resource that ClusterQueues do
// not cover: a task that requests it is never admitted. Kueue does not count
// resources that are excluded, replaced by others, or ignored in general.
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
		if t.Input == resource && t.Strategy == "Replace" { // the default strategy is Retain
			return false
		}
	}
	return file.Resources.Strategy != "IgnoreUndeclared" &&
		!slices.ContainsFunc(ExcludedPrefixes(text), func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

// ErrorMessage returns the sentence of an error of this package for a page.
func ErrorMessage(err error) string {
	var ours *governance.Error
	if errors.As(err, &ours) {
		return ours.Message
	}
	return err.Error()
}
