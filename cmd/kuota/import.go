package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"kuota.dev/kuota/cli"
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/document"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

const importAbout = `Reads compute quotas and scheduler configurations of HyperPod, in the JSON of aws sagemaker create-,
update-, describe- and list- or as these commands themselves, HyperPodPyTorchJobs and PyTorchJobs with an
elasticPolicy, tables of teams, or Kuota's own objects, and writes YAML for kubectl apply -f -. What
cannot be converted is reported on stderr. FILE is - for the standard input.

With --apply it saves them in the console instead, as you: the policy, then the allocations, then the
elastic tasks. It prints what each changes, and asks where running tasks are interrupted. A team or policy
that exists keeps what HyperPod does not have, such as members.`

// importFlags are the flags of kuota import.
type importFlags struct {
	kind  string
	apply bool
	save  cli.Applier
}

// importCommand returns the command that writes the objects in files as YAML, or saves them.
func importCommand(messages io.Writer) *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use: "import FILE...", Short: "convert HyperPod's objects to Kuota's YAML, or save them with --apply", GroupID: "quota", Long: importAbout,
		Example: "  kuota import quota.json policy.json --apply --dry-run",
	}
	flags := c.Flags()
	flags.StringVar(&f.kind, "kind", "", "only objects of this kind: allocation, policy or elasticjob")
	flags.BoolVar(&f.apply, "apply", false, "save in the console")
	f.save.Flags(c)
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]cobra.Completion{"allocation", "policy", "elasticjob"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, files []string) error {
		s := streams{in: c.InOrStdin(), out: c.OutOrStdout(), messages: messages}
		switch {
		case !slices.Contains([]string{"", "allocation", "policy", "elasticjob"}, f.kind):
			return fmt.Errorf("kind %q: use allocation, policy or elasticjob", f.kind)
		case len(files) == 0:
			return errors.New("name at least one file, or - for the standard input")
		}
		w := importWriter{streams: s, kind: f.kind, seen: map[string]string{}}
		if !f.apply {
			for _, name := range []string{"yes", "dry-run", "reason", "team"} {
				if c.Flags().Changed(name) {
					return fmt.Errorf("--%s goes with --apply", name)
				}
			}
			return w.all(files, func(o imports.Object) error {
				if w.written > 1 {
					if _, err := io.WriteString(w.out, "---\n"); err != nil {
						return err
					}
				}
				_, err := io.WriteString(w.out, o.YAML())
				return err
			})
		}
		if err := f.save.Connect(c); err != nil {
			return err
		}
		w.applies = true
		var read []imports.Object
		if err := w.all(files, func(o imports.Object) error { read = append(read, o); return nil }); err != nil {
			return err
		}
		return importApply{&f.save, messages}.all(c.Context(), read, w.skipped)
	}
	return c
}

// importWriter passes the objects of files on, and reports what it leaves out.
type importWriter struct {
	streams
	kind    string
	applies bool // and does not write YAML
	written int
	skipped int               // objects that cannot be saved, and files that have none
	seen    map[string]string // file that has the object, by object
	write   func(imports.Object) error
}

// all passes the objects of all files to write. It fails if it can convert none.
func (w *importWriter) all(files []string, write func(imports.Object) error) error {
	w.write = write
	for _, name := range files {
		if err := w.file(name); err != nil {
			return err
		}
	}
	if w.written == 0 {
		return errors.New("nothing could be imported")
	}
	return nil
}

func (w *importWriter) file(name string) error {
	text, err := readAll(name, w.in)
	if err != nil {
		return err
	}
	if name == "-" {
		name = "stdin"
	}
	result := imports.Read(text)
	if len(result.Objects) == 0 {
		w.skipped++
	}
	for _, o := range result.Objects {
		if err := w.object(name, o); err != nil {
			return err
		}
	}
	w.report(name, result.Problems)
	return nil
}

// readAll reads a file, or in for "-", up to the size that is imported.
func readAll(name string, in io.Reader) ([]byte, error) {
	file, err := openInput(name, in)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, document.MaxBytes+1))
}

// importNames returns the kind of an object as --kind has it, and its name in messages.
func importNames(o imports.Object) (kind, name string) {
	switch {
	case o.Allocation != nil:
		return "allocation", "team " + o.Allocation.Name
	case o.ElasticJob != nil:
		return "elasticjob", strings.TrimSpace("elastic task " + path.Join(o.ElasticJob.Namespace, o.ElasticJob.Name))
	}
	return "policy", "the cluster policy"
}

func (w *importWriter) object(file string, o imports.Object) error {
	kind, object := importNames(o)
	if w.kind != "" && w.kind != kind {
		w.report(file, []governance.FieldError{{Message: object + " was skipped: it is of another kind"}})
		return nil
	}
	w.report(file, o.Problems)
	switch earlier, twice := w.seen[object]; {
	case o.Allocation != nil && o.Allocation.Name == "":
		w.skipped++
		w.report(file, []governance.FieldError{{Message: "an allocation without a team name cannot be written; set ComputeQuotaTarget.TeamName"}})
		return nil
	case twice:
		w.report(file, []governance.FieldError{{Message: object + " was skipped: it is already in " + earlier}})
		return nil
	case w.applies && o.Overlay != nil && len(o.Problems) > 0: // a cell that cannot be read is a mistake, and no field that Kuota lacks
		w.skipped++
		w.written++
		w.report(file, []governance.FieldError{{Message: object + " is not saved: correct its line first"}})
		return nil
	}
	if o.ElasticJob != nil && o.ElasticJob.Labels[constants.QueueLabel] == "" && !w.applies {
		w.report(file, []governance.FieldError{{Message: object + " has no queue: set the label " + constants.QueueLabel + " before you apply it"}})
	}
	w.seen[object] = file
	w.written++
	return w.write(o)
}

// report prints what was not imported of a file.
func (w *importWriter) report(file string, errs []governance.FieldError) {
	for _, f := range errs {
		place := file + ": "
		if f.Path != "" {
			place += f.Path + ": "
		}
		fmt.Fprintln(w.messages, place+f.Message)
	}
}
