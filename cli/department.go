package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// departmentCommand returns the commands of departments.
func (o *options) departmentCommand() *cobra.Command {
	group := &cobra.Command{Use: "department", Aliases: []string{"departments"}, Short: "create, change and delete departments: quota that teams share", GroupID: "quota", Example: "  kuota department create research --pool ml.p5.48xlarge --gpus 64 --admin group:research-leads"}
	group.AddCommand(
		o.departmentSave("create NAME", "divide quota between teams and departments", "kuota department create research --pool ml.p5.48xlarge --gpus 64 --admin group:research-leads", http.MethodPost),
		o.departmentSave("edit NAME", "change a department: by flags, or all of it from a file", "kuota department edit research --pool ml.p5.48xlarge --gpus 96", http.MethodPut),
		o.describe(&cobra.Command{Use: "describe NAME", Short: "print a department", Args: oneDepartment, ValidArgsFunction: o.completeDepartments, Example: "  kuota department describe research -o yaml"},
			func(args []string) string { return departmentPath(args[0]) }),
		o.departmentDelete(),
		o.reading(read{
			use: "list", example: "kuota department list", about: "list departments with their accelerators", path: "/departments", file: "/departments",
			rows: func(answer any) ([]any, string) { return list(at(answer, "departments")), "" },
			columns: []column{
				{"DEPARTMENT", "name", nil}, {"PARENT", "parent", nil}, {"QUOTA", "resources", amountOf("quota")}, {"RESERVE", "resources", amountOf("reserve")}, {"USED", "resources", amountOf("used")},
				{"BORROWED", "resources", amountOf("borrowed")}, {"LENT", "resources", amountOf("lent")}, {"WAITING", "waitingTasks", nil},
			},
			name: "name",
		}))
	return group
}

var oneDepartment = oneArgument("department", "research")

func departmentPath(name string) string { return "/departments/" + url.PathEscape(name) }

// amountOf shows an amount of the accelerators of each pool, such as "8 GPUs of H100".
func amountOf(what string) func(any) string {
	return func(value any) string {
		var parts []string
		for _, r := range list(value) {
			resource, amount := fmt.Sprint(at(r, "resource")), at(r, what)
			if resource == "cpu" || resource == "memory" || strings.HasPrefix(resource, "vpc.amazonaws.com/") || amount == nil || fmt.Sprint(amount) == "0" {
				continue
			}
			parts = append(parts, clean(fmt.Sprintf("%v of %v", amount, at(r, "pool"))))
		}
		return strings.Join(parts, "; ")
	}
}

// departmentSave returns the command that creates or changes a department.
func (o *options) departmentSave(use, about, example, method string) *cobra.Command {
	var f allocationFlags
	var s saveFlags
	var parent string
	var admins []string
	c := &cobra.Command{Use: use, Short: about, Args: oneDepartment, Example: "  " + example}
	f.flags(c, o)
	for _, name := range []string{"preemption", "department"} {
		_ = c.Flags().MarkHidden(name) // of teams
	}
	c.Flags().StringVar(&parent, "parent", "", "department above it")
	c.Flags().StringArrayVar(&admins, "admin", nil, "user, or group as group:NAME, who changes the teams and departments below; several times for several. With --member, who only sees them, it replaces all members")
	if method == http.MethodPut {
		c.ValidArgsFunction = o.completeDepartments
		c.Flags().StringVarP(&f.file, "filename", "f", "", "JSON of kuota department describe -o json, changed; - for the standard input")
	}
	s.flags(c)
	_ = c.RegisterFlagCompletionFunc("parent", o.completeDepartments)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		d, path := object{}, departmentPath(args[0])
		switch {
		case method == http.MethodPost:
			d, path = object{"apiVersion": "kuota.dev/v1alpha1", "kind": "Department"}, "/departments"
			d.field("metadata")["name"] = args[0]
		case f.file != "":
			err = o.readObject(f.file, &d)
		default:
			err = client.call(c.Context(), http.MethodGet, path, nil, nil, &d)
		}
		if err != nil {
			return err
		}
		if err := f.apply(c, d); err != nil {
			return err
		}
		spec := d.field("spec")
		delete(spec, "preemption")
		if c.Flags().Changed("parent") {
			spec["parent"] = parent
			if parent == "" {
				delete(spec, "parent")
			}
		}
		if c.Flags().Changed("admin") {
			members, _ := spec["members"].([]any)
			if !c.Flags().Changed("member") {
				members = nil
			}
			for _, member := range membersOf(admins) {
				member["role"] = "Admin"
				members = append(members, map[string]any(member))
			}
			spec["members"] = members
		}
		return o.save(c.Context(), client, s, method, path, d)
	}
	return c
}

func (o *options) departmentDelete() *cobra.Command {
	var yes bool
	var reason string
	c := &cobra.Command{Use: "delete NAME", Short: "delete a department without teams and departments", Args: oneDepartment, ValidArgsFunction: o.completeDepartments, Example: "  kuota department delete research"}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "delete it without a question")
	c.Flags().StringVar(&reason, "reason", "", "why, for the activity")
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		if !yes {
			if err := o.ask("Delete department " + args[0] + "?"); err != nil {
				return err
			}
		}
		query := url.Values{}
		if reason != "" {
			query.Set("reason", reason)
		}
		return client.call(c.Context(), http.MethodDelete, departmentPath(args[0]), query, nil, nil)
	}
	return c
}

func (o *options) completeDepartments(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c, typed, func(client *client) ([]string, error) {
		var answer struct{ Departments []struct{ Name string } }
		err := client.call(c.Context(), http.MethodGet, "/departments", nil, nil, &answer)
		var names []string
		for _, d := range answer.Departments {
			names = append(names, d.Name)
		}
		return names, err
	})
}
