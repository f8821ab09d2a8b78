package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogTail(t *testing.T) {
	cases := map[string]struct {
		log   string
		lines int
		last  string
	}{
		"short":                    {"one\ntwo\n", 2, "    two"},
		"without a last newline":   {"one\ntwo", 2, "    two"},
		"long":                     {strings.Repeat("x\n", 100) + "end\n", tailLines, "    end"},
		"longer than what is read": {strings.Repeat(strings.Repeat("y", 999)+"\n", 200) + "end\n", tailLines, "    end"},
		"empty":                    {"", 1, "    (the log is empty)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(c.log), 0o644); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(logTail(path), "\n")
			if len(lines) != c.lines || lines[len(lines)-1] != c.last {
				t.Errorf("%d lines ending in %q, want %d ending in %q", len(lines), lines[len(lines)-1], c.lines, c.last)
			}
		})
	}
	if got := logTail(filepath.Join(t.TempDir(), "none")); !strings.Contains(got, "no log") {
		t.Errorf("a missing log reads %q", got)
	}
}
