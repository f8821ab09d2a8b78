package kueueconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// restart is the command for Kueue as it installs itself.
const restart = "kubectl --namespace kueue-system rollout restart deployment kueue-controller-manager"

// patch shows the difference as a person would type it, with two lines around
// each place.
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

const around = 2

// diff writes lines as a unified diff does. Both are a hundred lines or so,
// which the plain table of longest common runs does in no time.
func diff(b *strings.Builder, old, new []string) {
	common := make([][]int, len(old)+1)
	for i := range common {
		common[i] = make([]int, len(new)+1)
	}
	for i, o := range slices.Backward(old) {
		for j, n := range slices.Backward(new) {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if o == n {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []string
	var at []int // the line in old, from 1
	for i, j := 0, 0; i < len(old) || j < len(new); {
		at = append(at, i+1)
		switch {
		case i < len(old) && j < len(new) && old[i] == new[j]:
			out = append(out, " "+old[i])
			i, j = i+1, j+1
		case i < len(old) && (j == len(new) || common[i+1][j] >= common[i][j+1]):
			out = append(out, "-"+old[i])
			i++
		default:
			out = append(out, "+"+new[j])
			j++
		}
	}
	shown := -1
	for k, line := range out {
		near := slices.ContainsFunc(out[max(0, k-around):min(len(out), k+around+1)], func(l string) bool { return l[0] != ' ' })
		if !near {
			continue
		}
		if k > shown+1 || shown < 0 {
			fmt.Fprintf(b, "@@ line %d @@\n", at[k])
		}
		shown = k
		b.WriteString(line + "\n")
	}
}
