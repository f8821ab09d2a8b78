package audited_test

import (
	"fmt"
	"os"
	"testing"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

var receiver *consoles.AuditReceiver

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kuota-audited-")
	if err == nil {
		receiver, err = consoles.NewAuditReceiver(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	clustertest.MainWith(m, clustertest.Options{
		AuditPolicy: receiver.Policy, AuditWebhook: receiver.Webhook,
		After: func(*clustertest.Cluster) error { return os.RemoveAll(dir) },
	})
}
