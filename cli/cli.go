package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// options are the flags of all commands.
type options struct {
	server, token, tokenFile, caFile, output string
	out                                      io.Writer
	messages                                 io.Writer
	input                                    io.Reader // nil for the standard input
}

// groups are the titles of groups of commands in the help, in their order.
var groups = []*cobra.Group{{ID: "tasks", Title: "Tasks:"}, {ID: "quota", Title: "Quota and use:"}}

// New returns kuota with the commands of its users.
func New(out, messages io.Writer) *cobra.Command {
	o := &options{out: out, messages: messages}
	root := &cobra.Command{
		Use: "kuota", Short: "share a GPU cluster between teams", SilenceUsage: true, SilenceErrors: true,
		Long: "kuota shows and changes what the pages of a Kuota console do.\nIt finds the console by --server or $KUOTA_SERVER, and you by kuota login.",
	}
	root.SetOut(out)
	root.SetErr(messages)
	root.AddGroup(groups...)
	flags := root.PersistentFlags()
	flags.StringVar(&o.server, "server", os.Getenv("KUOTA_SERVER"), "address of the console; default $KUOTA_SERVER")
	flags.StringVar(&o.token, "token", "", "token of a service account with the audience kuota; default $KUOTA_TOKEN, else that of kuota login")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the token, which is read for each request")
	flags.StringVar(&o.caFile, "ca-file", "", "CA file (PEM) for the certificate of the console; default the system's CAs")
	for _, q := range reads {
		root.AddCommand(o.reading(q))
	}
	root.AddCommand(o.runCommand(), o.submitCommand(), o.translateCommand(), o.logsCommand(), o.podsCommand(), o.why(), o.noticesCommand(), o.loginCommand(), o.logoutCommand())
	root.AddCommand(o.allocationCommand(), o.departmentCommand(), o.policyCommand(), o.alertsCommand(), o.templateCommand())
	root.AddCommand(o.actCommands()...)
	root.AddCommand(o.changeCommands()...)
	return root
}

// read is a command that prints a table of the console.
type read struct {
	use, about string
	example    string
	group      string
	path       string   // of the API
	file       string   // address of the page without its extension, which has the table as CSV; default path
	name       string   // path in a row of what -o name prints; empty for a task
	filters    []filter // flags that become the query
	rows       func(answer any) (rows []any, note string)
	columns    []column
	wide       []column // more, for -o wide
}

// filter is a flag that becomes a value of the query.
type filter struct {
	flag, name, about string
	many              bool
}

var page = filter{flag: "page", name: "page", about: "page of the list"}

// reads are all commands that print tables.
var reads = []read{
	{
		use: "tasks", group: "tasks", example: "kuota tasks --team vision --status Pending -o wide", about: "list tasks", path: "/tasks",
		filters: []filter{
			{"team", "team", "of this team", true}, {"department", "department", "of the teams in this department and below it", false}, {"status", "status", "in this status, such as Pending or Running", true}, {"class", "class", "of this priority class", true},
			{"kind", "kind", "of this kind, such as Job", true}, {"pool", "pool", "in this pool", true}, {"by", "by", "submitted by this user", false}, {"mine", "mine", "submitted by you", false}, {"selector", "q", "with this label, such as sweep=lr", false},
			{"text", "q", "whose name contains this", false}, {"tab", "tab", "active, the default, or finished", false}, {"sort", "sort", "column of the page, such as name", false}, {"order", "order", "asc or desc", false}, page,
		},
		rows: paged("tasks"),
		columns: []column{
			{"NAMESPACE", "namespace", nil}, {"KIND", "kind", nil}, {"NAME", "name", nil}, {"TEAM", "team", nil}, {"CLASS", "priorityClass", nil}, {"STATUS", "status", nil},
			{"POSITION", "position", nil}, {"WAITED", "waitedSeconds", span}, {"RAN", "ranSeconds", span}, {"GPUS", "accelerators", nil}, {"DONE", "completed", done}, {"REASON", "reason", nil},
		},
		wide: []column{{"POOLS", "pools", joined}, {"BY", "submittedBy", nil}, {"RESOURCES", "resources", amounts}, {"PREEMPTIONS", "preemptions", nil}},
	},
	{
		use: "queue", group: "tasks", example: "kuota queue --team vision", about: "list the waiting tasks that are next to start", path: "/queue",
		filters: []filter{{"team", "team", "of this team", true}, {"department", "department", "of the teams in this department and below it", false}, {"class", "class", "of this priority class", true}, page},
		rows: func(answer any) ([]any, string) {
			return list(at(answer, "tasks")), fmt.Sprintf("page %v of %v, %v waiting tasks", at(answer, "page"), at(answer, "pages"), at(answer, "waiting"))
		},
		columns: []column{
			{"ORDER", "order", nil}, {"NAMESPACE", "namespace", nil}, {"KIND", "kind", nil}, {"NAME", "name", nil}, {"TEAM", "team", nil}, {"CLASS", "priorityClass", nil},
			{"REQUESTS", "requests", amounts}, {"WAITED", "waitedSeconds", span}, {"REASON", "reason", nil},
		},
	},
	{
		use: "past", group: "tasks", example: "kuota past --team vision", about: "list tasks that ended, also deleted ones", path: "/past-tasks", file: "/tasks/past",
		filters: []filter{
			{"team", "team", "of this team", false}, {"department", "department", "of the teams in this department and below it", false}, {"class", "class", "of this priority class", false}, {"kind", "kind", "of this kind, such as Job", false}, {"text", "q", "whose name contains this", false},
			{"from", "from", "first day, such as 2026-11-01", false}, {"to", "to", "last day", false}, page,
		},
		rows: func(answer any) ([]any, string) {
			note := ""
			if at(answer, "more") == true {
				note = "there are more: --page"
			}
			return list(at(answer, "tasks")), note
		},
		columns: []column{
			{"NAMESPACE", "namespace", nil}, {"KIND", "kind", nil}, {"NAME", "name", nil}, {"TEAM", "team", nil}, {"CLASS", "priorityClass", nil}, {"STATUS", "status", nil},
			{"ENDED", "ended", nil}, {"RAN", "ranSeconds", span}, {"GPUS", "accelerators", nil},
		},
		wide: []column{{"SUBMITTED", "submitted", nil}, {"BY", "submittedBy", nil}, {"POOLS", "pools", joined}, {"PREEMPTIONS", "preemptions", nil}},
	},
	{
		use: "teams", group: "quota", example: "kuota teams -o csv", name: "name", about: "list teams with their quota and usage", path: "/teams",
		filters: []filter{{"resource", "resource", "in this resource, such as cpu; default the accelerator that the cluster has most of", false}, {"pool", "pool", "in this pool", false}, {"department", "department", "of the teams in this department and below it", false}, {"text", "q", "whose name contains this", false}, {"sort", "sort", "column of the page, such as held", false}, {"order", "order", "asc or desc", false}, page},
		rows: func(answer any) ([]any, string) {
			rows, note := paged("teams")(answer)
			return rows, fmt.Sprintf("%s, in %v", note, at(answer, "unit"))
		},
		columns: []column{
			{"TEAM", "name", nil}, {"WEIGHT", "weight", nil}, {"ALLOCATED", "allocated", nil}, {"USED", "used", nil}, {"BORROWED", "borrowed", nil}, {"LENT", "lent", nil},
			{"UTILIZATION %", "utilizationPercent", nil}, {"RUNNING", "runningTasks", nil}, {"WAITING", "waitingTasks", nil},
		},
	},
	{
		use: "usage", group: "quota", example: "kuota usage --by month -o json", about: "report who used what, and what it cost", path: "/usage",
		filters: []filter{
			{"team", "team", "of this team", false}, {"department", "department", "of the teams in this department and below it", false}, {"pool", "pool", "in this pool", false}, {"resource", "resource", "in this resource, such as cpu", false},
			{"from", "from", "first day, such as 2026-11-01; default the first of the month", false}, {"to", "to", "last day; default today", false},
			{"by", "by", "periods: day, the default, week or month", false}, {"zone", "zone", "time zone of the days; default UTC", false},
		},
		rows: func(answer any) (rows []any, note string) {
			for _, period := range list(answer) {
				for _, line := range list(at(period, "lines")) {
					if object, ok := line.(map[string]any); ok {
						object["from"] = at(period, "from")
						rows = append(rows, object)
					}
				}
			}
			return rows, ""
		},
		columns: []column{
			{"FROM", "from", nil}, {"POOL", "pool", nil}, {"RESOURCE", "resource", nil}, {"WHO", "kind", nil}, {"TEAM", "team", nil},
			{"HOURS", "seconds", hours}, {"OWN", "ownSeconds", hours}, {"BORROWED", "borrowedSeconds", hours}, {"COST", "cost", nil},
		},
	},
	{
		use: "activity", group: "quota", example: "kuota activity --team vision", about: "list who did what, the latest first", path: "/activity",
		filters: []filter{
			{"team", "team", "of this team", false}, {"department", "department", "of the teams in this department and below it", false}, {"actor", "actor", "by this user", false}, {"action", "action", "of this action, such as stop", false}, {"text", "q", "whose name contains this", false},
			{"uid", "uid", "of the object with this UID", false}, {"from", "from", "first day, such as 2026-11-01", false}, {"to", "to", "last day", false}, {"before", "before", "older than this value of next", false},
		},
		rows: func(answer any) ([]any, string) {
			note := ""
			if next := at(answer, "next"); next != nil {
				note = fmt.Sprintf("older entries: --before %v", next)
			}
			return list(at(answer, "entries")), note
		},
		columns: []column{
			{"TIME", "at", nil}, {"WHO", "actor", nil}, {"SOURCE", "source", nil}, {"ACTION", "action", nil}, {"KIND", "kind", nil}, {"NAMESPACE", "namespace", nil}, {"NAME", "name", nil},
			{"TEAM", "team", nil}, {"OUTCOME", "outcome", nil}, {"REASON", "reason", nil}, {"CHANGES", "changes", joined},
		},
	},
}

// paged returns the rows of an answer with pages.
func paged(field string) func(any) ([]any, string) {
	return func(answer any) ([]any, string) {
		return list(at(answer, field)), fmt.Sprintf("page %v of %v, %v in all", at(answer, "page"), at(answer, "pages"), at(answer, "total"))
	}
}

func list(value any) []any {
	rows, _ := value.([]any)
	return rows
}

func sortedKeys(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// reading returns the command of a table.
func (o *options) reading(r read) *cobra.Command {
	c := &cobra.Command{Use: r.use, Short: r.about, GroupID: r.group, Example: "  " + r.example, Args: cobra.NoArgs}
	query := url.Values{}
	for _, f := range r.filters {
		flag := c.Flags().VarPF(&queryFlag{query, f}, f.flag, map[string]string{"selector": "l"}[f.flag], f.about)
		if f.name == "mine" {
			flag.NoOptDefVal = "true"
		}
	}
	watch := c.Flags().Bool("watch", false, "print the table again every two seconds")
	o.outputFlag(c, "table", "wide", "json", "yaml", "csv", "name")
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		if err := checkRead(query); err != nil {
			return err
		}
		for {
			if err := o.print(c.Context(), client, r, query); err != nil || !*watch {
				return err
			}
			if sleep(c.Context(), watchInterval) != nil {
				return nil
			}
			fmt.Fprintln(o.out)
		}
	}
	return c
}

// checkRead returns what is wrong with the values of flags: the pages leave out what they do not
// know, and a command says so.
func checkRead(query url.Values) error {
	for name, known := range map[string][]string{"tab": {"active", "finished"}, "order": {"asc", "desc"}, "mine": {"true", "false"}} {
		if value := query.Get(name); value != "" && !slices.Contains(known, value) {
			return fmt.Errorf("%q is not known; use %s", value, strings.Join(known, " or "))
		}
	}
	if value := query.Get("page"); value != "" && strings.Trim(value, "0123456789") != "" {
		return fmt.Errorf("--page %s: write a number", value)
	}
	return nil
}

// watchInterval is how often --watch prints a table.
const watchInterval = 2 * time.Second

// print prints a table once.
func (o *options) print(ctx context.Context, c *client, r read, query url.Values) error {
	address := api + r.path
	if o.output == "csv" {
		address = cmp.Or(r.file, r.path) + ".csv"
	}
	body, err := c.get(ctx, address, query)
	if err != nil || o.output == "json" || o.output == "csv" {
		_, failed := o.out.Write(body)
		return errors.Join(err, failed)
	}
	answer, err := decode(body)
	if err != nil {
		return err
	}
	if o.output == "yaml" {
		return o.yaml(answer)
	}
	rows, note := r.rows(answer)
	if o.output == "name" {
		for _, row := range rows {
			if name := at(row, r.name); r.name != "" {
				fmt.Fprintln(o.out, clean(fmt.Sprint(name)))
				continue
			}
			fmt.Fprintln(o.out, clean(fmt.Sprintf("%v/%v/%v", at(row, "namespace"), strings.ToLower(fmt.Sprint(at(row, "kind"))), at(row, "name"))))
		}
		return nil
	}
	columns := r.columns
	if o.output == "wide" {
		columns = slices.Concat(columns, r.wide)
	}
	if err := table(o.out, columns, rows); err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(o.messages, note)
	}
	return nil
}

// outputFlag adds -o with these formats, the first of which is the default.
func (o *options) outputFlag(c *cobra.Command, formats ...string) {
	output := c.Flags().StringP("output", "o", formats[0], strings.Join(formats, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	c.PreRunE = func(*cobra.Command, []string) error {
		if o.output = *output; !slices.Contains(formats, o.output) {
			return fmt.Errorf("-o %s: use %s", o.output, strings.Join(formats, ", "))
		}
		return nil
	}
}

// queryFlag writes a flag into a query.
type queryFlag struct {
	query  url.Values
	filter filter
}

func (f *queryFlag) String() string { return "" }
func (f *queryFlag) Type() string   { return "text" }

func (f *queryFlag) Set(text string) error {
	if f.filter.many {
		f.query.Add(f.filter.name, text)
	} else {
		f.query.Set(f.filter.name, text)
	}
	return nil
}

// client returns the client of the console that the flags name.
func (o *options) client() (*client, error) {
	server, err := serverOf(o.server)
	if err != nil {
		return nil, err
	}
	over, err := transport(o.caFile)
	if err != nil {
		return nil, err
	}
	c := &client{server: server, http: &http.Client{Transport: over, Timeout: timeout, CheckRedirect: noRedirects}}
	given := o.token
	if given == "" && o.tokenFile == "" {
		given = os.Getenv("KUOTA_TOKEN")
	}
	var mu sync.Mutex // logs of several pods ask together, and a refresh token is used once
	c.token = func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case given != "":
			return given, nil
		case o.tokenFile != "":
			text, err := os.ReadFile(o.tokenFile)
			return strings.TrimSpace(string(text)), err
		}
		return storedToken(ctx, server.String(), c.http)
	}
	return c, nil
}
