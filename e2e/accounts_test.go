package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWritingAccounts checks that the token of a service account writes by the API only if the
// account is named, and only what Kubernetes lets the account do. The API server refuses
// the console that acts as another one.
func TestWritingAccounts(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	unnamed := console(t)
	own, other := makeTenant(t, "writes-own", "vision-team"), makeTenant(t, "writes-other", "language-team")
	writer, reader := clustertest.Name("writer"), clustertest.Name("reader")
	c.Apply(t, robotBinding(own.team, writer)+"---"+robotBinding(own.team, reader))
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "serviceaccount", writer, reader, "-n", "default") })
	tokenOf := func(account string) string {
		return strings.TrimSpace(c.Kubectl(t, "", "create", "token", account, "-n", "default", "--audience", "kuota"))
	}
	token, readerToken := tokenOf(writer), tokenOf(reader)
	// The permissions that the chart adds for the one that is named.
	var role rbacv1.ClusterRole
	must(t, json.Unmarshal([]byte(strings.ReplaceAll(c.Kubectl(t, "", "get", "clusterrole", "kuota-impersonation", "-o", "json"), "-on:user-info:", "-on:serviceaccount:")), &role))
	rules, err := json.Marshal(role.Rules[1:]) // without that of users and groups
	must(t, err)
	c.Apply(t, strings.NewReplacer("WRITER", writer, "RULES", string(rules)).Replace(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: WRITER}, rules: RULES}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: WRITER}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: WRITER}, subjects: [{kind: ServiceAccount, name: kuota, namespace: kuota-system}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: WRITER, namespace: default}
rules: [{apiGroups: [authentication.k8s.io], resources: [serviceaccounts], resourceNames: [WRITER], verbs: ["impersonate:serviceaccount"]}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: WRITER, namespace: default}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: WRITER}, subjects: [{kind: ServiceAccount, name: kuota, namespace: kuota-system}]}
`))
	t.Cleanup(func() {
		c.Kubectl(t, "", "delete", "clusterrolebinding,clusterrole", writer)
		c.Kubectl(t, "", "delete", "rolebinding,role", writer, "-n", "default")
	})
	named := replica(t, "writers", append(signInEnv(c), "KUOTA_WRITING_ACCOUNTS=default/"+writer)...)
	must(t, waitReady(named))

	manifest := map[string]string{"manifest": strings.ReplaceAll(launchJob, "NAME", writer)}
	tasks := "/api/v1/teams/" + own.team + "/tasks"
	var status int
	var answer string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until the bindings are in the cache
		if status, answer = ask(t, "POST", named+tasks, token, manifest, "Idempotency-Key", writer); status != http.StatusCreated {
			return fmt.Errorf("the account submits: %d %.500s", status, answer)
		}
		return nil
	})
	if by := c.Kubectl(t, "", "get", "jobs", "-n", "hyperpod-ns-"+own.team, "-l", "sweep="+writer, "-o", `jsonpath={.items[*].metadata.annotations.kuota\.dev/submitted-by}`); by != "system:serviceaccount:default:"+writer {
		t.Errorf("the task is submitted by %q", by)
	}
	// A script needs the permission that kuota-elastic has in the namespaces of teams.
	c.Apply(t, strings.NewReplacer("TEAM", own.team, "WRITER", writer).Replace(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: WRITER, namespace: hyperpod-ns-TEAM}, rules: [{apiGroups: [""], resources: [configmaps], verbs: ["impersonate-on:serviceaccount:create", "impersonate-on:serviceaccount:get", "impersonate-on:serviceaccount:list", "impersonate-on:serviceaccount:delete"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: WRITER-console, namespace: hyperpod-ns-TEAM}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: WRITER}, subjects: [{kind: ServiceAccount, name: kuota, namespace: kuota-system}]}
`))
	script := map[string]any{"task": map[string]any{"name": writer + "-script", "image": "example.com/train:1", "script": "#!/bin/sh\ntrue\n", "accelerators": 0, "vcpu": "0.1", "memory": "0.1"}}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until the role applies
		if status, answer = ask(t, "POST", named+tasks, token, script, "Idempotency-Key", "script"); status != http.StatusCreated {
			return fmt.Errorf("the account submits a script: %d %.500s", status, answer)
		}
		return nil
	})
	for _, command := range [][]string{{"stop", writer + "-*", "--team", own.team, "--yes"}, {"delete", writer + "-*", "--team", own.team, "--yes"}} {
		if out, messages, err := kuota(t, named, append(command, "--token", token)...); err != nil {
			t.Errorf("kuota %v: %v\n%s%s", command, err, out, messages)
		}
	}
	for name, tc := range map[string]struct{ method, address, token string }{
		"an account that is not named":             {"POST", named + tasks, readerToken},
		"one that is not named at its console":     {"POST", unnamed + tasks, token},
		"a task of another team":                   {"DELETE", named + "/api/v1/tasks/hyperpod-ns-" + other.team + "/job/" + other.job, token},
		"submitting to another team":               {"POST", named + "/api/v1/teams/" + other.team + "/tasks", token},
		"the quota of its team":                    {"DELETE", named + "/api/v1/allocations/" + own.team, token},
		"holding its team":                         {"POST", named + "/api/v1/allocations/" + own.team + "/hold", token},
		"a token with an audience of another name": {"POST", named + tasks, strings.TrimSpace(c.Kubectl(t, "", "create", "token", writer, "-n", "default"))},
	} {
		var body any
		if strings.HasSuffix(tc.address, "/tasks") {
			body = manifest
		}
		if status, answer := ask(t, tc.method, tc.address, tc.token, body); status != http.StatusForbidden && status != http.StatusNotFound && status != http.StatusUnauthorized {
			t.Errorf("%s: got status %d, want a refusal: %.300s", name, status, answer)
		}
	}
	for account, want := range map[string]bool{writer: true, reader: false} {
		config := rest.CopyConfig(c.Console)
		config.Impersonate.UserName = "system:serviceaccount:default:" + account
		as, err := client.New(config, client.Options{Mapper: c.Client.RESTMapper(), Scheme: c.Client.Scheme()})
		must(t, err)
		err = as.Get(t.Context(), client.ObjectKey{Namespace: "hyperpod-ns-" + own.team, Name: own.job}, &batchv1.Job{})
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "cannot impersonate") {
			t.Errorf("the console acts as %s: %v", account, err)
		}
	}
	if jobs := c.Kubectl(t, "", "get", "jobs", "-A", "-l", "sweep="+writer, "-o", "name"); jobs != "" {
		t.Errorf("refused requests created %s", jobs)
	}
}
