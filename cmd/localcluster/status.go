package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// status is one line for each component.
func (s *supervisor) status() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tPID\tSTATE\tPORTS")
	for _, c := range s.list() {
		st, p := c.get()
		pid := "-"
		if p != nil && (st == running || st == starting) {
			pid = fmt.Sprint(p.pid())
		}
		var ports []string
		for _, np := range c.ports {
			ports = append(ports, fmt.Sprintf("%s=%d", np.use, np.port))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.name, pid, st, strings.Join(ports, " "))
	}
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
