package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

// announce says in a few lines what there is, and marks the instance as ready.
func (s *supervisor) announce(o upOptions, url, issuer string, begin time.Time) error {
	lines := []string{fmt.Sprintf("ready after %.1f s", time.Since(begin).Seconds())}
	if url != "" {
		lines = append(lines, "  console     "+url)
	}
	if issuer != "" {
		users, err := provider.ReadUsers(s.layout.signin("users.yaml"))
		if err != nil {
			return err
		}
		lines = append(lines, "  provider    "+issuer)
		lines = append(lines, userLines(users)...)
	}
	lines = append(lines,
		"  kubeconfig  "+s.layout.kubeconfig(),
		"  kubectl     "+filepath.Join(absolute(o.bin), "kubectl")+" --kubeconfig "+s.layout.kubeconfig(),
		"  logs        "+s.layout.path("logs"))
	s.say("%s", strings.Join(lines, "\n"))
	if err := os.WriteFile(s.layout.ready(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

// userLines is one line for each who can sign in.
func userLines(users []provider.User) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, u := range users {
		if !u.Disabled {
			fmt.Fprintf(w, "    sign in as %s\tpassword %s\t%s\n", u.Name, u.Password, u.About)
		}
	}
	_ = w.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
