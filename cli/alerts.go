package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// alertsCommand returns the commands of alerts.
func (o *options) alertsCommand() *cobra.Command {
	rows := func(field string) func(any) ([]any, string) {
		return func(answer any) ([]any, string) { return list(at(answer, field)), "" }
	}
	group := &cobra.Command{Use: "alerts", Short: "list and silence alerts, and test receivers", GroupID: "quota", Example: "  kuota alerts silence task-waits --team vision --for 4h --reason maintenance"}
	group.AddCommand(o.reading(read{
		use: "list", example: "kuota alerts list", about: "list alerts that fire, and those that ended in the last week", path: "/alerts", rows: rows("alerts"), name: "rule",
		filters: []filter{{flag: "department", name: "department", about: "alerts of this department, of those below it and of their teams"}},
		columns: []column{{"RULE", "rule", nil}, {"SEVERITY", "severity", nil}, {"STATE", "state", nil}, {"TEAM", "team", nil}, {"SINCE", "since", nil}, {"SILENCED UNTIL", "silencedUntil", nil}, {"SUMMARY", "summary", nil}},
	}), o.reading(read{
		use: "silences", example: "kuota alerts silences -o json", about: "list silences", path: "/alerts/silences", rows: rows("silences"), name: "id",
		columns: []column{{"ID", "id", nil}, {"RULE", "rule", nil}, {"TEAM", "team", nil}, {"UNTIL", "until", nil}, {"BY", "actor", nil}, {"REASON", "reason", nil}},
	}))
	// writing returns a command that sends a request.
	writing := func(use, about, example, done string, args cobra.PositionalArgs, request func(args []string) (method, path string, body any)) *cobra.Command {
		return &cobra.Command{Use: use, Short: about, Args: args, Example: "  " + example, RunE: func(c *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			method, path, body := request(args)
			if err := client.call(c.Context(), method, path, nil, body, nil); err != nil {
				return err
			}
			fmt.Fprintln(o.messages, done)
			return nil
		}}
	}
	var sent struct {
		Rule   string `json:"rule,omitempty"`
		Team   string `json:"team,omitempty"`
		For    string `json:"for"`
		Reason string `json:"reason,omitempty"`
	}
	silence := writing("silence [RULE]", "silence the alerts of a rule, or of all rules", "kuota alerts silence task-waits --team vision --for 4h --reason maintenance", "Silenced.", cobra.MaximumNArgs(1), func(args []string) (string, string, any) {
		if len(args) == 1 {
			sent.Rule = args[0]
		}
		return http.MethodPost, "/alerts/silences", sent
	})
	silence.Flags().StringVar(&sent.Team, "team", "", "of this team; default all")
	silence.Flags().StringVar(&sent.For, "for", "1h", "how long, such as 30m, 4h, 1d or 1w; at most a week")
	silence.Flags().StringVar(&sent.Reason, "reason", "", "why, for other admins")
	_ = silence.RegisterFlagCompletionFunc("team", o.completeTeams)
	group.AddCommand(silence,
		writing("end ID", "end a silence", "kuota alerts end 5PT2N3EJ", "The silence has ended.", cobra.ExactArgs(1), func(args []string) (string, string, any) {
			return http.MethodDelete, "/alerts/silences/" + url.PathEscape(args[0]), nil
		}),
		writing("test RECEIVER", "send a test message to a receiver of the cluster policy", "kuota alerts test ops", "A test message is sent.", cobra.ExactArgs(1), func(args []string) (string, string, any) {
			return http.MethodPost, "/alerts/receivers/" + url.PathEscape(args[0]) + "/test", nil
		}))
	return group
}
