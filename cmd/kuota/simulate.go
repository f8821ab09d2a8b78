package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/engine"
	"kuota.dev/kuota/governance/kueue/simulate/worker"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// simulateCommand simulates a snapshot with Kueue's scheduler, or is the child
// process of a console that does.
func simulateCommand(ctx context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("kuota simulate", flag.ContinueOnError)
	flags.SetOutput(s.messages)
	snapshotPath := flags.String("f", "", "the snapshot with its question, as JSON, compressed or not; - for standard input")
	questionPath := flags.String("question", "", "another question, as JSON; without one the cluster is simulated as it is")
	hashNames := flags.Bool("hash-names", false, "do not simulate, but print the snapshot and the question with hashes for names")
	memory := flags.Int64("worker", 0, "serve a console that started this process, with this much memory in bytes")
	if err := flags.Parse(args); err != nil {
		return exitError{code: 2, error: err}
	}
	ctrl.SetLogger(logr.Discard()) // Kueue's log is about objects that are not in the cluster
	e := &engine.Engine{}
	if *memory > 0 {
		killFirst()
		return worker.Serve(s.in, s.out, *memory, e.Answer)
	}
	if *snapshotPath == "" || flags.NArg() > 0 {
		return exitError{code: 2, error: fmt.Errorf("kuota simulate -f snapshot.json [-question question.json] [-hash-names]")}
	}
	replay := simulate.Replay{Snapshot: &simulate.Snapshot{}, Question: &simulate.Question{}}
	if err := readJSON(*snapshotPath, s.in, &replay); err != nil {
		return err
	}
	if *questionPath != "" {
		replay.Question = &simulate.Question{}
		if err := readJSON(*questionPath, s.in, replay.Question); err != nil {
			return err
		}
	}
	if replay.Question.Ties == 0 {
		replay.Question.Ties = defaultTies
	}
	out := json.NewEncoder(s.out)
	out.SetIndent("", "  ")
	if *hashNames {
		salt := make([]byte, 16)
		rand.Read(salt) //nolint:errcheck // never fails
		names := simulate.NewNames(salt, replay.Snapshot, replay.Question)
		replay.Snapshot, replay.Question = names.Snapshot(replay.Snapshot), names.Question(replay.Question)
		return out.Encode(replay)
	}
	report, err := e.Answer(ctx, replay.Snapshot, replay.Question)
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return out.Encode(report)
}

// killFirst makes the kernel kill this process before the console when memory runs
// out. Where it must not, the child's own limit is all there is.
func killFirst() {
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) //nolint:errcheck // as said
}

// defaultTies is in how many orders ties are broken for a question that does not
// say.
const defaultTies = 3

func readJSON(path string, in io.Reader, to any) error {
	file, err := openInput(path, in)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewReader(file)
	in = buffered
	if start, _ := buffered.Peek(2); string(start) == "\x1f\x8b" { // an error shows when it is decoded
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		in = z
	}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// simulationWorker returns how to start the child process that simulates for a
// console, on at most one core and with this much memory in bytes.
func simulationWorker(memory int64) func() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return func() *exec.Cmd {
		cmd := exec.Command(self, "simulate", "-worker", strconv.FormatInt(memory, 10))
		cmd.Env = []string{"GOMAXPROCS=1"}
		cmd.Stderr = os.Stderr
		return cmd
	}
}
