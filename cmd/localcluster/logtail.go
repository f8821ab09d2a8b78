package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailLines = 20
	tailBytes = 64 << 10 // enough for 20 long lines; a log may be gigabytes
)

// logTail is the end of a log, indented, for a person to read.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("    (no log: %v)", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	}
	b, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return fmt.Sprintf("    (log unreadable: %v)", err)
	}
	return lastLines(b, tailLines)
}

func lastLines(b []byte, n int) string {
	b = bytes.TrimRight(b, "\n")
	if len(b) == 0 {
		return "    (the log is empty)"
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "    " + strings.Join(lines, "\n    ")
}
