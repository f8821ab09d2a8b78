package kueueconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"

	yaml "go.yaml.in/yaml/v3"
)

// document is the configuration while it is edited. Kuota's sections are edited
// as whole lines of the text, because encoding the whole document would move
// comments and remove empty lines.
type document struct {
	original    string // as read from the cluster
	text        string
	root        *yaml.Node // of text
	hasEnable   bool       // v1beta1, whose sections have a key enable
	changes     []string
	unsupported []string
	broken      bool // by a change, such as one that removed an anchor that is used elsewhere
}

const (
	group = "config.kueue.x-k8s.io/"
	// maxLines is ten times the length of Kueue's default; a comparison takes its
	// square.
	maxLines = 2000
)

// invalid returns an error about the configuration.
func invalid(err error, format string, args ...any) error {
	return &governance.Error{Kind: governance.Invalid, Op: "read Kueue's configuration", Message: fmt.Sprintf(format, args...), Err: err}
}

func read(text string) (*document, error) {
	d := &document{original: text, text: text}
	if n := strings.Count(text, "\n"); n > maxLines {
		return nil, invalid(nil, "Kueue's configuration has %d lines, and Kuota supports up to %d. Change it by hand.", n, maxLines)
	}
	if err := d.parse(); err != nil {
		return nil, err
	}
	if d.root.Style&yaml.FlowStyle != 0 { // on one line, such as JSON: there are no lines to edit
		d.root.Style &^= yaml.FlowStyle
		b, err := encode(d.root)
		if err != nil {
			return nil, err
		}
		d.text = string(b)
		if err := d.parse(); err != nil {
			return nil, err
		}
	}
	version, kind := scalar(child(d.root, "apiVersion")), scalar(child(d.root, "kind"))
	known := version == group+"v1beta1" || version == group+"v1beta2"
	if !known || kind != "Configuration" {
		return nil, invalid(nil, "Kueue's configuration is a %q of %q, and Kuota supports Configuration of %sv1beta1 and v1beta2. Change Kueue's configuration by hand.", kind, version, group)
	}
	d.hasEnable = version == group+"v1beta1"
	for _, name := range []string{fairSharing, admissionFairSharing, waitForPodsReady, featureGates} {
		if n := d.section(name); n != nil && n.Kind != yaml.MappingNode {
			return nil, invalid(nil, "In Kueue's configuration, %s is not a plain mapping. Write its keys out.", name)
		}
	}
	return d, nil
}

// parse parses the text again, so that the nodes have its line numbers.
func (d *document) parse() error {
	decoder := yaml.NewDecoder(strings.NewReader(d.text))
	var node yaml.Node
	if err := decoder.Decode(&node); err != nil && !errors.Is(err, io.EOF) {
		return invalid(err, "Kueue's configuration is not YAML. Correct it in its ConfigMap.")
	}
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return invalid(nil, "Kueue's configuration is empty or not a mapping. Correct it in its ConfigMap.")
	}
	if _, err := values(&node); err != nil { // such as a duplicate key
		return invalid(err, "Kueue's configuration is not YAML that Kueue accepts. Correct it in its ConfigMap.")
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return invalid(err, "Kueue's configuration has more than one document. Correct it in its ConfigMap.")
	}
	d.root = node.Content[0]
	return nil
}

// section returns a top-level value; nil if it is absent or null, which Kueue
// treats alike.
func (d *document) section(name string) *yaml.Node {
	n := child(d.root, name)
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	return n
}

// result returns the edited text; the original bytes if nothing changed. It is
// an error if the value of a section changed that is neither Kuota's nor in
// others.
func (d *document) result(others ...string) (string, error) {
	if d.broken {
		return "", errUnsafe()
	}
	before := &document{text: d.original}
	if err := before.parse(); err != nil {
		return "", err
	}
	var all [2]map[string]any
	for i, root := range []*yaml.Node{before.root, d.root} {
		all[i], _ = values(root)
	}
	if reflect.DeepEqual(all[0], all[1]) {
		return d.original, nil
	}
	for _, m := range all {
		maps.DeleteFunc(m, func(name string, _ any) bool {
			return slices.Contains(append(others, fairSharing, admissionFairSharing, waitForPodsReady, featureGates), name)
		})
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		return "", errUnsafe()
	}
	return d.text, nil
}

func errUnsafe() error {
	return invalid(nil, "Kuota cannot change Kueue's configuration safely as it is written. Change it by hand.")
}

func values(n *yaml.Node) (map[string]any, error) {
	var m map[string]any
	err := n.Decode(&m)
	return m, err
}

// encode encodes a node with the indentation of Kueue's own files.
func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(n); err != nil {
		return nil, invalid(err, "Kuota cannot rewrite Kueue's configuration. Change it by hand.")
	}
	return b.Bytes(), nil
}

// BatchJob is the integration that Kueue enables if its configuration lists
// none.
const BatchJob = "batch/job"

// Integrations returns the kinds of jobs that Kueue manages, in the order of
// its configuration: first built-in ones such as batch/job, then external ones
// such as Job.v1.batch.example.com.
func Integrations(text string) []string {
	var file struct {
		Integrations struct {
			Frameworks         []string `yaml:"frameworks"`
			ExternalFrameworks []string `yaml:"externalFrameworks"`
		} `yaml:"integrations"`
	}
	if yaml.Unmarshal([]byte(text), &file) != nil || len(file.Integrations.Frameworks) == 0 {
		file.Integrations.Frameworks = []string{BatchJob}
	}
	return append(file.Integrations.Frameworks, file.Integrations.ExternalFrameworks...)
}
