package cli

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// policyCommand returns the commands of the cluster policy.
func (o *options) policyCommand() *cobra.Command {
	group := &cobra.Command{Use: "policy", Short: "print and change the cluster policy", GroupID: "quota", Example: "  kuota policy edit --class-weight training=70"}
	group.AddCommand(o.describe(&cobra.Command{Use: "describe", Short: "print the cluster policy", Args: cobra.NoArgs, Example: "  kuota policy describe"}, func([]string) string { return "/policy" }))
	var s saveFlags
	var file, prioritization, idle string
	var weights map[string]int64
	c := &cobra.Command{
		Use: "edit", Short: "change the cluster policy: by flags, or all of it from a file", Args: cobra.NoArgs,
		Example: "  kuota policy edit --class-weight training=70 --idle fair-share",
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "JSON of kuota policy describe -o json, changed; - for the standard input")
	c.Flags().StringToInt64Var(&weights, "class-weight", nil, "weight of a priority class, NAME=0 to 100; several times for several")
	numbers := c.Flags().Bool("numeric-priorities", false, "whether tasks can name a number from 0 to 99 instead of a class")
	c.Flags().StringVar(&prioritization, "prioritization", "", "task-ranking, or first-come")
	c.Flags().StringVar(&idle, "idle", "", "idle compute: fair-share, or first-come")
	s.flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		policy := object{}
		if file != "" {
			err = o.readObject(file, &policy)
		} else {
			err = client.call(c.Context(), http.MethodGet, "/policy", nil, nil, &policy)
		}
		if err != nil && !isNotFound(err) { // there is none yet
			return err
		}
		spec := policy.field("spec")
		for flag, to := range map[string]struct {
			value string
			in    object
			field string
			names map[string]string
		}{
			"prioritization": {prioritization, spec, "taskPrioritization", map[string]string{"task-ranking": "TaskRanking", "first-come": "FirstComeFirstServe"}},
			"idle":           {idle, spec.field("idleCompute"), "strategy", map[string]string{"fair-share": "FairShare", "first-come": "FirstComeFirstServe"}},
		} {
			if !c.Flags().Changed(flag) {
				continue
			}
			if to.names[to.value] == "" {
				return fmt.Errorf("--%s %s: use %s", flag, to.value, strings.Join(slices.Sorted(maps.Keys(to.names)), " or "))
			}
			to.in[to.field] = to.names[to.value]
		}
		if c.Flags().Changed("numeric-priorities") {
			spec["numericPriorities"] = *numbers
		}
		classes, _ := spec["priorityClasses"].([]any)
		for name, weight := range weights {
			i := slices.IndexFunc(classes, func(class any) bool { return at(class, "name") == name })
			if i < 0 {
				classes = append(classes, map[string]any{"name": name})
				i = len(classes) - 1
			}
			if class, ok := classes[i].(map[string]any); ok {
				class["weight"] = weight
			}
		}
		if len(classes) > 0 {
			spec["priorityClasses"] = classes
		}
		return o.save(c.Context(), client, s, http.MethodPut, "/policy", policy)
	}
	group.AddCommand(c, &cobra.Command{
		Use: "try-again", Short: "apply Kueue's configuration again, after another writer changed it back", Args: cobra.NoArgs, Example: "  kuota policy try-again",
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			return client.call(c.Context(), http.MethodPost, "/policy/try-again", nil, nil, nil)
		},
	})
	return group
}
