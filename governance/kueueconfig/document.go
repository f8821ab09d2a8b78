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

// document is the configuration while it is edited. What is ours is changed by
// whole lines in the text, since writing the whole document anew would move
// comments and lose empty lines.
type document struct {
	original    string // as it came
	text        string
	root        *yaml.Node // of text
	hasEnable   bool       // v1beta1: sections have a key enable
	changes     []string
	unsupported []string
	broken      bool // by a change, as when it took away what another place refers to
}

const (
	group = "config.kueue.x-k8s.io/"
	// maxLines is ten times what Kueue ships; comparing takes its square.
	maxLines = 2000
)

// refuse is an error about the configuration.
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
	if d.root.Style&yaml.FlowStyle != 0 { // all on one line, such as JSON: there are no lines to change
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
	for _, name := range []string{fairSharing, waitForPodsReady, featureGates} {
		if n := d.section(name); n != nil && n.Kind != yaml.MappingNode {
			return nil, invalid(nil, "In Kueue's configuration, %s is not a plain mapping. Write its keys out.", name)
		}
	}
	return d, nil
}

// parse reads the text anew, so that the nodes have its line numbers.
func (d *document) parse() error {
	decoder := yaml.NewDecoder(strings.NewReader(d.text))
	var node yaml.Node
	if err := decoder.Decode(&node); err != nil && !errors.Is(err, io.EOF) {
		return invalid(err, "Kueue's configuration is not YAML. Correct it in its ConfigMap.")
	}
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return invalid(nil, "Kueue's configuration is empty or not a mapping. Correct it in its ConfigMap.")
	}
	if _, err := values(&node); err != nil { // such as a key that stands there twice
		return invalid(err, "Kueue's configuration is not YAML that Kueue accepts. Correct it in its ConfigMap.")
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return invalid(err, "Kueue's configuration has more than one document. Correct it in its ConfigMap.")
	}
	d.root = node.Content[0]
	return nil
}

// section is a top-level value; nil when it is absent or null, which is the
// same to Kueue.
func (d *document) section(name string) *yaml.Node {
	n := child(d.root, name)
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	return n
}

// checked is the text in the end: the very same when nothing was changed. What
// is neither ours nor one of the other sections must have kept its value.
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
			return slices.Contains(append(others, fairSharing, waitForPodsReady, featureGates), name)
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

// encode writes a node as Kueue's own files are written.
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
