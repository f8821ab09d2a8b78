package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/document"

	"sigs.k8s.io/kueue/pkg/controller/constants"
)

const importUsage = `usage: kuota import [--kind allocation|policy|elasticjob] FILE... | -

Reads compute quotas and scheduler configurations of HyperPod, in the JSON of
aws sagemaker create-, describe- and list-, HyperPodPyTorchJobs and PyTorchJobs
with an elasticPolicy, or Kuota's own objects, and writes YAML for kubectl apply
-f -. What cannot be converted is reported on stderr.
`

// importCommand writes the objects in files as YAML. It fails if it can convert
// none.
func importCommand(_ context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("kuota import", flag.ContinueOnError)
	kind := flags.String("kind", "", "write objects of this kind only: allocation, policy or elasticjob")
	switch err := parse(flags, args, true, importUsage); {
	case err != nil:
		return err
	case !slices.Contains([]string{"", "allocation", "policy", "elasticjob"}, *kind):
		return fmt.Errorf("kind %q: use allocation, policy or elasticjob", *kind)
	case flags.NArg() == 0:
		return fmt.Errorf("name at least one file\n%s", importUsage)
	}
	w := importWriter{streams: s, kind: *kind, seen: map[string]string{}}
	for _, name := range flags.Args() {
		if err := w.file(name); err != nil {
			return err
		}
	}
	if w.written == 0 {
		return errors.New("nothing could be imported")
	}
	return nil
}

// importWriter writes objects as one YAML stream.
type importWriter struct {
	streams
	kind    string
	written int
	seen    map[string]string // file that has the object, by object
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

func (w *importWriter) object(file string, o imports.Object) error {
	kind, object := "policy", "the cluster policy"
	switch {
	case o.Allocation != nil:
		kind, object = "allocation", "team "+o.Allocation.Name
	case o.ElasticJob != nil:
		kind, object = "elasticjob", strings.TrimSpace("elastic task "+path.Join(o.ElasticJob.Namespace, o.ElasticJob.Name))
	}
	if w.kind != "" && w.kind != kind {
		w.report(file, []governance.FieldError{{Message: object + " was skipped: it is of another kind"}})
		return nil
	}
	w.report(file, o.Problems)
	switch earlier, twice := w.seen[object]; {
	case o.Allocation != nil && o.Allocation.Name == "":
		w.report(file, []governance.FieldError{{Message: "an allocation without a team name cannot be written; set ComputeQuotaTarget.TeamName"}})
		return nil
	case twice:
		w.report(file, []governance.FieldError{{Message: object + " was skipped: it is already in " + earlier}})
		return nil
	}
	if o.ElasticJob != nil && o.ElasticJob.Labels[constants.QueueLabel] == "" {
		w.report(file, []governance.FieldError{{Message: object + " has no queue: set the label " + constants.QueueLabel + " before you apply it"}})
	}
	w.seen[object] = file
	if w.written++; w.written > 1 {
		if _, err := io.WriteString(w.out, "---\n"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w.out, o.YAML())
	return err
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
