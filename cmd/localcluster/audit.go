package main

import (
	_ "embed"
	"fmt"
	"os"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

func (l layout) auditPolicy() string { return l.run("audit-policy.yaml") }

// writeAuditPolicy puts the policy where the API server reads it.
func writeAuditPolicy(l layout) error {
	if err := os.WriteFile(l.auditPolicy(), auditPolicy, 0o644); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	return nil
}

// auditFlags make the API server write DIR/logs/audit.log.
func auditFlags(l layout) []string {
	return []string{
		"--audit-policy-file=" + l.auditPolicy(),
		"--audit-log-path=" + l.log("audit"),
		"--audit-log-maxsize=50", // MiB
		"--audit-log-maxbackup=1",
	}
}
