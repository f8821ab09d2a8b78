package elastic_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
)

// At night inference releases 96 of 256 GPUs, and a training of 32 grows to 128. In the
// morning inference comes back in three waves, and the training yields each of them.
// How fast is measured by make bench.
func TestNight(t *testing.T) {
	if !clustertest.Verify && os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("takes half a minute: run by make verify and make bench")
	}
	l := newLab(t, 32)
	training, inference, others := l.team("training", 32, nil), l.team("inference", 96, nil), l.team("others", 128, nil)
	wave := func(team string, from, to int) (jobs []*batchv1.Job) {
		for i := from; i < to; i++ {
			jobs = append(jobs, l.submitPods(team, fmt.Sprintf("task-%d-%s", i, team), trainingClass, 1, 8))
		}
		for _, job := range jobs {
			l.admitted(job, soon)
		}
		return jobs
	}
	clusterPolicy{v1alpha1.TaskRanking, v1alpha1.IdleFirstComeFirstServe}.apply(t)
	wave(others, 0, 16)
	day := wave(inference, 0, 12)
	policy := v1alpha1.ElasticPolicy{
		MinReplicas: 4, MaxReplicas: 16, ReplicaIncrementStep: ptr.To[int32](1),
		ScalingTimeoutInSeconds: 5, FaultyScaleDownTimeoutInSeconds: 30, MinStablePeriodSeconds: 1, BackoffMaxSeconds: 5,
	}
	e := l.elasticOf(training, "train", trainingClass, policy, pods(8))
	l.size(e, 4, soon)

	released := time.Now()
	for _, job := range day {
		l.remove(job)
	}
	l.size(e, 16, soon)
	grown := time.Since(released)
	l.running(e, 16, soon)
	for i := range 3 {
		began := time.Now()
		wave(inference, 100+4*i, 104+4*i)
		back := time.Since(began)
		l.size(e, int32(16-4*(i+1)), soon)
		fmt.Printf("figure elastic_night_wave_%d %.2f s\n", i+1, back.Seconds())
	}
	l.running(e, 4, soon)

	fmt.Printf("figure elastic_night_growth %.2f s\n", grown.Seconds())
}
