package strange_test

import (
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }
