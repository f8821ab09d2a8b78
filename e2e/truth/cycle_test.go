package truth_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

const (
	cycleDepartment = 25 // ClusterQueues in each Cohort
	cycleEvents     = 5
	cycleLimit      = 10 * time.Minute // for the ClusterQueues to be active
)

// TestKueueCycle measures Kueue's own scheduling cycle: in each of many ClusterQueues one
// Workload uses the quota, and one waits for more. Each end of a task makes Kueue try all
// that wait in the tree of Cohorts. With 1,000 queues a cycle takes half a minute.
func TestKueueCycle(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	c := clustertest.Get(t)
	l := newLab(t, c)
	metrics := kueueMetrics(t, c)
	for _, queues := range []int{100, 300} {
		began := time.Now()
		y := &cycle{lab: l, prefix: clustertest.Name("cycle"), metrics: metrics}
		must(t, y.create(t.Context(), queues))
		if active, err := y.await(t.Context(), queues); err != nil {
			fmt.Printf("figure kueue_cycle_%d not measured: %d ClusterQueues had a Workload each after %s\n", queues, active, time.Since(began).Round(time.Second))
			return
		}
		for i := range queues { // not before: those that wait would borrow
			must(t, l.client.Create(t.Context(), y.workload(y.queue(i), "waits", "2")))
		}
		fmt.Printf("figure kueue_active_%d %.0f s\n", queues, time.Since(began).Seconds())
		before, err := y.settled(t.Context(), attempts{})
		must(t, err)
		var took, cycles float64
		for range cycleEvents {
			must(t, y.end(t.Context()))
			after, err := y.settled(t.Context(), before)
			must(t, err)
			took, cycles = took+after.seconds-before.seconds, cycles+after.count-before.count
			must(t, y.refill(t.Context())) // otherwise two ends would be enough for one that waits
			before, err = y.settled(t.Context(), after)
			must(t, err)
		}
		fmt.Printf("figure kueue_cycle_%d %.3f s, %.1f cycles for each end of a task\n", queues, took/cycles, cycles/cycleEvents)
	}
}

// cycle is what TestKueueCycle works on.
type cycle struct {
	*lab
	prefix  string
	ended   int // Workloads that were deleted
	metrics func(context.Context) (attempts, error)
}

// create creates ClusterQueues in two levels of Cohorts, each with a Workload.
func (y *cycle) create(ctx context.Context, queues int) error {
	if err := y.client.Create(ctx, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: y.prefix}}); err != nil {
		return err
	}
	for i := range queues {
		department, name := fmt.Sprintf("%s-%03d", y.prefix, i/cycleDepartment), y.queue(i)
		objects := []client.Object{
			&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
				CohortName: kueue.CohortReference(department), NamespaceSelector: &metav1.LabelSelector{},
				Preemption: &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny, WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
				ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{catalog.GPU}, Flavors: []kueue.FlavorQuotas{{
					Name: kueue.ResourceFlavorReference(y.prefix), Resources: []kueue.ResourceQuota{{Name: catalog.GPU, NominalQuota: resource.MustParse("1")}},
				}}}},
			}},
			&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)}},
			y.workload(name, "runs", "1"),
		}
		if i%cycleDepartment == 0 {
			objects = append([]client.Object{&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: department}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(y.prefix)}}}, objects...)
		}
		for _, object := range objects {
			if err := y.client.Create(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (y *cycle) queue(i int) string { return fmt.Sprintf("%s-q%04d", y.prefix, i) }

func (y *cycle) workload(queue, name, gpus string) *kueue.Workload {
	asked := corev1.ResourceList{catalog.GPU: resource.MustParse(gpus)}
	return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: queue + "-" + name}, Spec: kueue.WorkloadSpec{
		QueueName: kueue.LocalQueueName(queue),
		PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: asked, Limits: asked}}},
		}}}},
	}}
}

// await waits until one Workload of each ClusterQueue uses its quota, and returns how many do.
func (y *cycle) await(ctx context.Context, queues int) (active int, err error) {
	for until := time.Now().Add(cycleLimit); ; {
		var list kueue.WorkloadList
		if err := y.client.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return active, err
		}
		active = 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, y.prefix) && meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, kueue.WorkloadAdmitted) {
				active++
			}
		}
		switch {
		case active >= queues:
			return active, nil
		case time.Now().After(until):
			return active, errors.New("not all ClusterQueues are active")
		}
		time.Sleep(time.Second)
	}
}

// end deletes a Workload that uses quota: what it frees is too little for those that wait.
func (y *cycle) end(ctx context.Context) error {
	y.ended++
	return y.client.Delete(ctx, &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: y.queue(y.ended-1) + "-runs"}})
}

// refill creates a Workload that uses what the last one freed.
func (y *cycle) refill(ctx context.Context) error {
	return y.client.Create(ctx, y.workload(y.queue(y.ended-1), "again", "1"))
}

// attempts is how many cycles Kueue had in which it tried a Workload, and their duration.
type attempts struct{ count, seconds float64 }

// settled returns the attempts once there was one more, and then none for two seconds and twice as
// long as the last one took: they are counted at their end.
func (y *cycle) settled(ctx context.Context, before attempts) (attempts, error) {
	last, since, quiet := before, time.Now(), time.Duration(0)
	for {
		now, err := y.metrics(ctx)
		switch {
		case err != nil:
			return now, err
		case now != last:
			quiet = 2*time.Second + time.Duration(2*(now.seconds-last.seconds)/(now.count-last.count)*float64(time.Second))
			last, since = now, time.Now()
		case now.count > before.count && time.Since(since) > quiet:
			return now, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kueueMetrics returns a function that reads the metrics of Kueue.
func kueueMetrics(t *testing.T, c *clustertest.Cluster) func(context.Context) (attempts, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "run", "kueue-config.yaml"))
	must(t, err)
	var config struct {
		Metrics struct {
			BindAddress string `json:"bindAddress"`
		} `json:"metrics"`
	}
	must(t, yaml.Unmarshal(text, &config))
	name := clustertest.Name("metrics")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	must(t, c.Client.Create(t.Context(), account))
	must(t, c.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}}}))
	token := &authenticationv1.TokenRequest{}
	must(t, c.Client.SubResource("token").Create(t.Context(), account, token))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // Kueue's own certificate, on loopback
	return func(ctx context.Context) (a attempts, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+config.Metrics.BindAddress+"/metrics", nil)
		if err != nil {
			return a, err
		}
		request.Header.Set("Authorization", "Bearer "+token.Status.Token)
		response, err := client.Do(request)
		if err != nil {
			return a, err
		}
		defer response.Body.Close()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			return a, fmt.Errorf("metrics of Kueue: %s (%w)", response.Status, err)
		}
		for _, m := range families["kueue_admission_attempt_duration_seconds"].GetMetric() {
			a.count += float64(m.GetHistogram().GetSampleCount())
			a.seconds += m.GetHistogram().GetSampleSum()
		}
		return a, nil
	}
}
