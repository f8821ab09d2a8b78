package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"kuota.dev/kuota/governance/simulate"
	"kuota.dev/kuota/governance/simulate/engine"
	"kuota.dev/kuota/governance/simulate/worker"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// simulateCommand simulates a snapshot with Kueue's scheduler, or is the child
// process of a console that does.
func simulateCommand(ctx context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("kuota simulate", flag.ContinueOnError)
	flags.SetOutput(s.messages)
	snapshotPath := flags.String("f", "", "the snapshot, as JSON; - for standard input")
	questionPath := flags.String("question", "", "the question, as JSON; without it the cluster is simulated as it is")
	memory := flags.Int64("worker", 0, "serve a console that started this process, with this much memory in bytes")
	if err := flags.Parse(args); err != nil {
		return exitError{code: 2, error: err}
	}
	ctrl.SetLogger(logr.Discard()) // Kueue's log is about objects that are not in the cluster
	e := &engine.Engine{}
	if *memory > 0 {
		return worker.Serve(s.in, s.out, *memory, e.Answer)
	}
	if *snapshotPath == "" || flags.NArg() > 0 {
		return exitError{code: 2, error: fmt.Errorf("kuota simulate -f snapshot.json [-question question.json]")}
	}
	var snapshot simulate.Snapshot
	if err := readJSON(*snapshotPath, s.in, &snapshot); err != nil {
		return err
	}
	question := simulate.Question{Ties: defaultTies}
	if *questionPath != "" {
		if err := readJSON(*questionPath, s.in, &question); err != nil {
			return err
		}
	}
	report, err := e.Answer(ctx, &snapshot, &question)
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	out := json.NewEncoder(s.out)
	out.SetIndent("", "  ")
	return out.Encode(report)
}

// defaultTies is in how many orders ties are broken for a question that does not
// say.
const defaultTies = 3

func readJSON(path string, in io.Reader, to any) error {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// simulationWorker returns the child process that simulates for a console, on at
// most one core.
func simulationWorker() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, "simulate", "-worker", strconv.Itoa(worker.DefaultMemory))
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Stderr = os.Stderr
	return cmd
}
