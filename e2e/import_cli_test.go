package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// builtKuota runs a command of kuota that package cli does not have, with an input, against a console.
func builtKuota(t *testing.T, console, token, input string, args ...string) (out, messages string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(clustertest.Root(), ".local", "bin", "kuota"), args...)
	command.Env = append(os.Environ(), "KUOTA_SERVER="+console, "KUOTA_TOKEN="+token)
	var printed, remarks bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &printed, &remarks
	err = command.Run()
	return printed.String(), remarks.String(), err
}

// launchQuota is a command of the launch post of fine-grained quota.
const launchQuota = `aws sagemaker create-compute-quota --name only-gpu-quota --description "test description" --activation-state Enabled \
  --compute-quota-config "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2}],ResourceSharingConfig={Strategy=LendAndBorrow,BorrowLimit=10}" \
  --compute-quota-target "TeamName=TEAM,FairShareWeight=10"
`

// TestImportApply saves the quota of the launch post in a shell, once.
func TestImportApply(t *testing.T) {
	t.Parallel()
	address := console(t)
	c := clustertest.Get(t)
	team := clustertest.Name("import-apply")
	deleteTeamAtEnd(t, team)
	text := strings.ReplaceAll(launchQuota, "TEAM", team)
	find := func() (a v1alpha1.ComputeAllocation, err error) {
		err = c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &a)
		return a, err
	}
	apply := func(token, input string, flags ...string) (string, error) {
		out, messages, err := builtKuota(t, address, token, input, append([]string{"import", "-", "--apply"}, flags...)...)
		if out != "" {
			t.Errorf("kuota import --apply prints %q, want messages only", out)
		}
		return messages, err
	}

	ada, admin := personToken(t, "ada"), personToken(t, "admin")
	if messages, err := apply(ada, text); err == nil || !strings.Contains(messages, "You may not change compute allocations") {
		t.Errorf("a member: %v\n%s", err, messages)
	}
	if messages, err := apply(admin, text, "--dry-run"); err != nil || !strings.Contains(messages, "GPUs: – → 2") || strings.Contains(messages, "Saved.") {
		t.Errorf("a dry run: %v\n%s", err, messages)
	}
	if _, err := find(); !errors.IsNotFound(err) {
		t.Fatalf("an allocation was saved by a member or a dry run: %v", err)
	}

	messages, err := apply(admin, text, "--yes")
	if err != nil || !strings.Contains(messages, "team "+team+":") || !strings.Contains(messages, "GPUs: – → 2") || !strings.Contains(messages, "Saved.") {
		t.Fatalf("an admin: %v\n%s", err, messages)
	}
	waitForQueues(t, c, team)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		a, err := find()
		if err == nil && !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) {
			err = fmt.Errorf("conditions %+v", a.Status.Conditions)
		}
		return err
	})
	saved, err := find()
	must(t, err)
	two, percent := int64(2), int32(10)
	if diff := cmp.Diff([]v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &two}}}, saved.Spec.Quota); diff != "" {
		t.Errorf("quota (-want +got):\n%s", diff)
	}
	if s := saved.Spec; s.DisplayName != "only-gpu-quota" || s.Description != "test description" || s.FairShareWeight != 10 || s.Activation != v1alpha1.Active || s.Sharing.Strategy != v1alpha1.LendAndBorrow || *s.Sharing.BorrowLimitPercent != percent {
		t.Errorf("saved %+v", s)
	}

	if messages, err := apply(admin, text); err != nil || !strings.Contains(messages, "Saving changes nothing.") || strings.Contains(messages, "Saved.") {
		t.Errorf("the second time: %v\n%s", err, messages)
	}
	if again, err := find(); err != nil || again.Generation != saved.Generation || again.ResourceVersion == "" {
		t.Errorf("the second time saved generation %d after %d: %v", again.Generation, saved.Generation, err)
	}

	// What HyperPod does not have stays, and a member still changes nothing.
	saved.Spec.Members = []v1alpha1.Member{{Kind: "Group", Name: "vision-team"}}
	must(t, c.Client.Patch(t.Context(), &v1alpha1.ComputeAllocation{ObjectMeta: saved.ObjectMeta}, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"members":[{"kind":"Group","name":"vision-team"}]}}`))))
	four := strings.ReplaceAll(text, "Accelerators=2", "Accelerators=4")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until her binding is in the cache
		_, _, err := kuota(t, address, "allocation", "describe", team, "--token", ada)
		return err
	})
	if messages, err := apply(ada, four); err == nil || !strings.Contains(messages, "You may not change compute allocations") {
		t.Errorf("a member of the team: %v\n%s", err, messages)
	}
	if messages, err := apply(admin, four, "--yes", "--reason", "moved"); err != nil || !strings.Contains(messages, "2 → 4") {
		t.Errorf("a change: %v\n%s", err, messages)
	}
	changed, err := find()
	must(t, err)
	if *changed.Spec.Quota[0].Accelerators != 4 || len(changed.Spec.Members) != 1 {
		t.Errorf("the change saved %+v", changed.Spec)
	}

	// She submits an elastic job to it, which its namespace names.
	job := strings.NewReplacer("NAME", clustertest.Name("bert"), "TEAM", team).Replace(elasticLaunch)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until its queue is in the cache
		messages, err := apply(ada, job, "--dry-run")
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, messages)
		}
		return err
	})
	out, messages, err := builtKuota(t, address, ada, job, "import", "-", "--apply")
	if name := "hyperpod-ns-" + team + "/elasticjob/bert"; err != nil || !strings.HasPrefix(out, name) {
		t.Errorf("an elastic job: %v, %q\n%s", err, out, messages)
	}
	if messages, err := apply(ada, job, "--yes"); err == nil || !strings.Contains(messages, "in the namespace already") {
		t.Errorf("the elastic job again: %v\n%s", err, messages)
	}
}

// elasticLaunch is an elastic job as HyperPod's training operator takes it.
const elasticLaunch = `apiVersion: sagemaker.amazonaws.com/v1
kind: HyperPodPyTorchJob
metadata: {name: NAME, namespace: hyperpod-ns-TEAM}
spec:
  nprocPerNode: "1"
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1}
  replicaSpecs:
  - name: pod
    replicas: 1
    maxReplicas: 2
    template:
      spec:
        containers: [{name: train, image: "example.com/train:1", resources: {requests: {nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: "1"}}}]
`
