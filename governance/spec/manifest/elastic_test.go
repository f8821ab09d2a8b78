package manifest_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/manifest"
)

// Each invalid value is reported once, at its field, with what would be valid.
func TestCheckElasticPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(*v1alpha1.ElasticPolicy)
		wantPath    string // empty if it is valid
		wantMessage string
	}{
		"steps":           {change: func(*v1alpha1.ElasticPolicy) {}},
		"one size":        {change: func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 4 }},
		"64 sizes":        {change: func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas, *p.ReplicaIncrementStep = 67, 1 }},
		"sizes":           {change: sizes(16, 4, 8)},
		"no minimum":      {change: func(p *v1alpha1.ElasticPolicy) { p.MinReplicas = 0 }, wantPath: "p.minReplicas", wantMessage: "from 1 to 10,000"},
		"maximum below":   {change: func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 3 }, wantPath: "p.maxReplicas", wantMessage: "smaller than the minimum of 4"},
		"maximum beyond":  {change: func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 10_001 }, wantPath: "p.maxReplicas", wantMessage: "from 1 to 10,000"},
		"neither":         {change: func(p *v1alpha1.ElasticPolicy) { p.ReplicaIncrementStep = nil }, wantPath: "p.replicaIncrementStep", wantMessage: "give a step"},
		"both":            {change: func(p *v1alpha1.ElasticPolicy) { p.ReplicaDiscreteValues = []int32{4, 16} }, wantPath: "p.replicaDiscreteValues", wantMessage: "either"},
		"no step":         {change: func(p *v1alpha1.ElasticPolicy) { *p.ReplicaIncrementStep = 0 }, wantPath: "p.replicaIncrementStep", wantMessage: "from 1"},
		"misses maximum":  {change: func(p *v1alpha1.ElasticPolicy) { *p.ReplicaIncrementStep = 5 }, wantPath: "p.replicaIncrementStep", wantMessage: "steps of 5 from 4 do not reach 16; use 4 or 6"},
		"beyond maximum":  {change: func(p *v1alpha1.ElasticPolicy) { *p.ReplicaIncrementStep = 13 }, wantPath: "p.replicaIncrementStep", wantMessage: "use 12"},
		"too many":        {change: func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas, *p.ReplicaIncrementStep = 68, 1 }, wantPath: "p.replicaIncrementStep", wantMessage: "gives 65 sizes, and at most 64 are allowed; use 2"},
		"without minimum": {change: sizes(8, 16), wantPath: "p.replicaDiscreteValues", wantMessage: "must contain the minimum, 4"},
		"without maximum": {change: sizes(4, 8), wantPath: "p.replicaDiscreteValues", wantMessage: "must contain the maximum, 16"},
		"outside":         {change: sizes(4, 16, 32), wantPath: "p.replicaDiscreteValues", wantMessage: "32 is not from"},
		"twice":           {change: sizes(4, 8, 8, 16), wantPath: "p.replicaDiscreteValues", wantMessage: "contains 8 twice"},
		"zero":            {change: sizes(0, 4, 16), wantPath: "p.replicaDiscreteValues", wantMessage: "from 1"},
		"negative":        {change: func(p *v1alpha1.ElasticPolicy) { p.ScalingTimeoutInSeconds = -1 }, wantPath: "p.scalingTimeoutInSeconds", wantMessage: "from 0 to 86400"},
		"backoff":         {change: func(p *v1alpha1.ElasticPolicy) { p.BackoffMaxSeconds = 59 }, wantPath: "p.backoffMaxSeconds", wantMessage: "minStablePeriodSeconds, 60"},
	} {
		t.Run(name, func(t *testing.T) {
			p := v1alpha1.DefaultElasticPolicy()
			p.MinReplicas, p.MaxReplicas, p.ReplicaIncrementStep = 4, 16, new(int32(4))
			tc.change(&p)
			got := manifest.CheckElasticPolicy(&p, "p")
			switch {
			case tc.wantPath == "" && len(got) != 0:
				t.Errorf("got %v, want no error", got)
			case tc.wantPath != "" && (len(got) != 1 || got[0].Path != tc.wantPath || !strings.Contains(got[0].Message, tc.wantMessage)):
				t.Errorf("got %v, want %q at %s", got, tc.wantMessage, tc.wantPath)
			}
		})
	}
}

func sizes(values ...int32) func(*v1alpha1.ElasticPolicy) {
	return func(p *v1alpha1.ElasticPolicy) { p.ReplicaIncrementStep, p.ReplicaDiscreteValues = nil, values }
}
