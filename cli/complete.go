package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// json prints a value.
func (o *options) json(value any) error {
	encoder := json.NewEncoder(o.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// complete returns names of the console that begin with what is typed; none if it does not answer.
func (o *options) complete(c *cobra.Command, typed string, names func(*client) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, err := o.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := names(client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []cobra.Completion
	for _, name := range found {
		if strings.HasPrefix(name, typed) {
			list = append(list, clean(name))
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func (o *options) completeTeams(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c, typed, func(client *client) ([]string, error) { return client.teams(c.Context()) })
}

func (o *options) completeTasks(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c, typed, func(client *client) ([]string, error) {
		var answer struct{ Tasks []task }
		err := client.call(c.Context(), http.MethodGet, "/tasks", url.Values{"q": {typed}}, nil, &answer)
		names := make([]string, len(answer.Tasks))
		for i, t := range answer.Tasks {
			names[i] = t.Name
		}
		return names, err
	})
}

func (o *options) completeClasses(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c, typed, func(client *client) ([]string, error) {
		var answer struct {
			Spec struct {
				PriorityClasses []struct{ Name string }
			}
		}
		err := client.call(c.Context(), http.MethodGet, "/policy", nil, nil, &answer)
		var names []string
		for _, class := range answer.Spec.PriorityClasses {
			names = append(names, class.Name)
		}
		return names, err
	})
}

func (o *options) completePools(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c, typed, func(client *client) ([]string, error) {
		var answer struct {
			Allocations []struct{ Quota []struct{ Pool string } }
		}
		err := client.call(c.Context(), http.MethodGet, "/allocations", nil, nil, &answer)
		var names []string
		seen := map[string]bool{}
		for _, a := range answer.Allocations {
			for _, q := range a.Quota {
				if !seen[q.Pool] {
					names, seen[q.Pool] = append(names, q.Pool), true
				}
			}
		}
		return names, err
	})
}

// oneTask and oneTeam are the arguments of commands about one of them.
var (
	oneTask = oneArgument("task", "train")
	oneTeam = oneArgument("team", "vision")
)

// oneArgument returns a check that there is one argument.
func oneArgument(what, example string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("name one %s, such as %s %s", what, c.CommandPath(), example)
		}
		return nil
	}
}
