package training_test

import (
	"os"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// skipped is why the training does not run, or empty.
func skipped() string {
	switch {
	case os.Getenv("KUOTA_VERIFY") == "" || os.Getenv("KUOTA_IMAGES") == "":
		return "trains for several minutes on a real node: run by make verify"
	case os.Getuid() != 0:
		return "a real node needs root"
	}
	return ""
}

func TestMain(m *testing.M) {
	if skipped() != "" { // no cluster for nothing
		os.Exit(m.Run())
	}
	clustertest.MainWith(m, clustertest.Options{RealNode: true})
}
