package strange_test

import (
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the API server warns of what is odd
	clustertest.Main(m)
}
