package kueueconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/spec/textdiff"

	yaml "go.yaml.in/yaml/v3"
)

// set sets keys of a section whose values differ; nil deletes a key. It keeps
// all other keys, and creates a missing section.
func (d *document) set(name string, entry map[string]any, sentence string) {
	section := d.section(name)
	if section == nil {
		section = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if !setKeys(section, entry) {
		return
	}
	if d.rewrite(name, section) != nil {
		return // impossible: it was parsed from YAML
	}
	d.changes = append(d.changes, sentence)
}

func (d *document) remove(name, sentence string) {
	d.replace(name, nil)
	d.changes = append(d.changes, sentence)
}

// replace replaces the lines of a top-level key, or appends them if the key is
// missing.
func (d *document) replace(name string, with []string) {
	if d.broken {
		return
	}
	newline := "\n"
	if strings.Contains(d.text, "\r\n") {
		newline = "\r\n"
	}
	lines := strings.SplitAfter(d.text, "\n")
	indent := strings.Repeat(" ", d.root.Content[0].Column-1)
	from, to := d.lines(lines, name, indent)
	for i, line := range with {
		with[i] = indent + strings.TrimSuffix(line, "\n") + newline
	}
	if from > 0 && len(with) > 0 && !strings.HasSuffix(lines[from-1], "\n") {
		lines[from-1] += newline
	}
	d.text = strings.Join(slices.Concat(lines[:from], with, lines[to:]), "")
	d.broken = d.parse() != nil
}

// lines returns the range of lines of a top-level key. It ends before the
// comments and empty lines above the next key, which belong to that key.
func (d *document) lines(lines []string, name, indent string) (from, to int) {
	end := len(lines)
	if lines[end-1] == "" { // after the last newline
		end--
	}
	last := d.root.Content[len(d.root.Content)-2].Line
	for i := last; i < end; i++ {
		if strings.HasPrefix(lines[i], "---") || strings.HasPrefix(lines[i], "...") {
			end = i
		}
	}
	for i := 0; i < len(d.root.Content); i += 2 {
		key := d.root.Content[i]
		if key.Value != name {
			continue
		}
		from, to = key.Line-1, end
		if i+2 < len(d.root.Content) {
			to = d.root.Content[i+2].Line - 1
		}
		for to > from+1 && isBlankOrComment(lines[to-1], indent) {
			to--
		}
		return from, to
	}
	return end, end
}

func isBlankOrComment(line, indent string) bool {
	text := strings.TrimSpace(line)
	return text == "" || strings.HasPrefix(line, indent+"#")
}

// restart is the command for the names of Kueue's release manifests.
const restart = "kubectl --namespace kueue-system rollout restart deployment kueue-controller-manager"

// patch returns the changes for an admin to apply by hand, with two lines of
// context.
func patch(seen Current, wanted Desired) string {
	var b strings.Builder
	if wanted.ConfigChanged {
		b.WriteString("# In Kueue's ConfigMap, under controller_manager_config.yaml:\n")
		diff(&b, split(seen.Text), split(wanted.Text))
	}
	if wanted.ArgsChanged {
		b.WriteString("# In Kueue's Deployment, the arguments of container manager:\n")
		diff(&b, items(seen.Args), items(wanted.Args))
	}
	if b.Len() > 0 {
		fmt.Fprintf(&b, "# Kueue reads both at startup only, so then:\n# %s\n", cmp.Or(seen.RestartCommand, restart))
	}
	return b.String()
}

func split(text string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}

func items(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = "- " + arg
	}
	return out
}

// contextLines is the number of unchanged lines around each change.
const contextLines = 2

// diff writes the changed lines like a unified diff.
func diff(b *strings.Builder, before, after []string) {
	lines := textdiff.Lines(before, after)
	number, shown := 1, -1 // of the line in before, and the index of the last line shown
	for i, line := range lines {
		if textdiff.Differs(lines[max(0, i-contextLines):min(len(lines), i+contextLines+1)]) {
			if i > shown+1 || shown < 0 {
				fmt.Fprintf(b, "@@ line %d @@\n", number)
			}
			shown = i
			b.WriteString(marker(line) + line.Text + "\n")
		}
		if !line.Added {
			number++
		}
	}
}

func marker(l textdiff.Line) string {
	switch {
	case l.Added:
		return "+"
	case l.Removed:
		return "-"
	}
	return " "
}
