package kueueconfig

import (
	"cmp"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/spec/textdiff"
)

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
