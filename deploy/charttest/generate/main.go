// Command generate writes what is derived from the chart: the raw manifests in
// deploy/rbac, and the table of values in docs/install.md. Before that it copies into
// the chart what is generated elsewhere, because a chart cannot contain files of other
// folders: the CRDs and the dashboard. make generate runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kuota.dev/kuota/deploy/charttest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	root := charttest.Root()
	copies, err := charttest.Copies()
	if err != nil {
		return err
	}
	for to, from := range copies {
		text, err := os.ReadFile(filepath.Join(root, from))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, to), text, 0o644); err != nil {
			return err
		}
	}
	manifests, err := charttest.RawManifests()
	if err != nil {
		return err
	}
	for name, text := range manifests {
		if err := os.WriteFile(filepath.Join(root, "deploy", "rbac", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	table, err := charttest.ValuesTable()
	if err != nil {
		return err
	}
	install := filepath.Join(root, "docs", "install.md")
	text, err := os.ReadFile(install)
	if err != nil {
		return err
	}
	replaced, err := charttest.ReplaceTable(string(text), table)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.TrimPrefix(install, root+"/"), err)
	}
	return os.WriteFile(install, []byte(replaced), 0o644)
}
