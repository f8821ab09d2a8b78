package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// templateCommand returns the commands of the templates of a team.
func (o *options) templateCommand() *cobra.Command {
	group := &cobra.Command{Use: "template", Aliases: []string{"templates"}, Short: "save tasks as templates of a team, and list, print and delete them", GroupID: "tasks", Example: "  kuota template show nightly --team vision | kuota submit -f - --team vision"}
	var team, file string
	// command returns a command for the templates at a path below the team's.
	command := func(use, about, example string, args cobra.PositionalArgs, run func(c *cobra.Command, client *client, path, name string) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: about, Args: args, Example: "  " + example}
		c.Flags().StringVar(&team, "team", "", "of this team")
		_ = c.MarkFlagRequired("team")
		_ = c.RegisterFlagCompletionFunc("team", o.completeTeams)
		c.RunE = func(c *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return run(c, client, "/teams/"+url.PathEscape(team)+"/templates", name)
		}
		return c
	}
	save := command("save NAME", "save the task of a file as a template", "kuota template save nightly -f train.yaml --team vision", cobra.ExactArgs(1), func(c *cobra.Command, client *client, path, name string) error {
		text, err := o.manifests([]string{file})
		if err != nil {
			return err
		}
		return client.call(c.Context(), http.MethodPost, path, nil, map[string]string{"name": name, "manifest": text}, nil)
	})
	save.Flags().StringVarP(&file, "filename", "f", "-", "manifest of one task; - for the standard input")
	listing := command("list", "list the templates of a team", "kuota template list --team vision", cobra.NoArgs, func(c *cobra.Command, client *client, path, _ string) error {
		return o.print(c.Context(), client, read{
			path: path, name: "name", rows: func(answer any) ([]any, string) { return list(at(answer, "templates")), "" },
			columns: []column{{"NAME", "name", nil}, {"KIND", "kind", nil}, {"CREATED", "created", nil}},
		}, nil)
	})
	o.outputFlag(listing, "table", "json", "yaml", "name")
	recipes := command("recipes", "list the recipes of Kuota, for kuota run --recipe", "kuota template recipes --team vision", cobra.NoArgs, func(c *cobra.Command, client *client, path, _ string) error {
		return o.print(c.Context(), client, read{
			path: path, name: "name", rows: func(answer any) ([]any, string) { return list(at(answer, "recipes")), "" },
			columns: []column{{"NAME", "name", nil}, {"TITLE", "title", nil}, {"NOT RUN BY TESTS", "notRun", nil}},
		}, nil)
	})
	o.outputFlag(recipes, "table", "json", "yaml", "name")
	group.AddCommand(save, listing, recipes,
		command("show NAME", "print the manifest of a template, for kuota submit -f -", "kuota template show nightly --team vision", cobra.ExactArgs(1), func(c *cobra.Command, client *client, path, name string) error {
			text, err := client.get(c.Context(), api+path+"/"+url.PathEscape(name), nil)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(o.out, cleanLines(string(text)))
			return err
		}),
		command("delete NAME", "delete a template", "kuota template delete nightly --team vision", cobra.ExactArgs(1), func(c *cobra.Command, client *client, path, name string) error {
			return client.call(c.Context(), http.MethodDelete, path+"/"+url.PathEscape(name), nil, nil, nil)
		}))
	return group
}
