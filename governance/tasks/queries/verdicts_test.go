package queries

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricOfVerdicts(t *testing.T) {
	if problems, err := testutil.CollectAndLint(verdicts); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}
