package cluster

import (
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const account = "system:serviceaccount:kuota-system:kuota"

// TestDenials checks which 403 responses count as a missing permission of the console,
// in both encodings, and that the caller reads the response unchanged.
func TestDenials(t *testing.T) {
	encoders := map[string]runtime.Serializer{
		"JSON":     json.NewSerializerWithOptions(json.DefaultMetaFactory, clientscheme.Scheme, clientscheme.Scheme, json.SerializerOptions{}),
		"protobuf": protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme),
	}
	for name, tc := range map[string]struct {
		message string
		path    string // empty means /api/v1/pods
		as      string // the impersonated user
		code    int    // 0 means 403
		want    float64
	}{
		"the console may not list":       {message: `pods is forbidden: User "` + account + `" cannot list resource "pods" in API group "" at the cluster scope`, want: 1},
		"it may not grant a role":        {message: `rolebindings.rbac.authorization.k8s.io "kuota-members" is forbidden: user "` + account + `" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held`, want: 1},
		"it may not impersonate a user":  {as: "ada", message: `users.authentication.k8s.io "ada" is forbidden: User "` + account + `" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope`, want: 1},
		"it may not do this as a user":   {as: "ada", message: `jobs.batch "train" is forbidden: User "` + account + `" cannot impersonate-on:user-info:create resource "jobs" in API group "batch" in the namespace "a"`, want: 1},
		"it may not impersonate at all":  {as: "ada", message: `users "ada" is forbidden: User "` + account + `" cannot impersonate resource "users" in API group "" at the cluster scope`, want: 1},
		"the user may not":               {as: "ada", message: `computeallocations.kuota.dev is forbidden: User "ada" cannot create resource "computeallocations" in API group "kuota.dev" at the cluster scope`},
		"an admission plugin rejects it": {message: `admission webhook "vclusterqueue.kb.io" denied the request: no`},
		"a quota rejects it":             {message: `pods "a" is forbidden: exceeded quota: kuota-ceiling`},
		"Kueue has just started":         {path: visibilityPath + "v1beta2/namespaces/a/localqueues/q/pendingworkloads", message: `localqueues.visibility.kueue.x-k8s.io "q" is forbidden: User "system:anonymous" cannot get resource "localqueues/pendingworkloads" in API group "visibility.kueue.x-k8s.io" in the namespace "a"`},
		"the console may not ask Kueue":  {path: visibilityPath + "v1beta2/namespaces/a/localqueues/q/pendingworkloads", message: `localqueues.visibility.kueue.x-k8s.io "q" is forbidden: User "` + account + `" cannot get resource "localqueues/pendingworkloads" in API group "visibility.kueue.x-k8s.io" in the namespace "a"`, want: 1},
		"not found":                      {message: `User "` + account + `" cannot`, code: http.StatusNotFound},
	} {
		for encoding, encoder := range encoders {
			t.Run(name+" in "+encoding, func(t *testing.T) {
				status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Message: tc.message, Code: http.StatusForbidden}
				var body bytes.Buffer
				if err := encoder.Encode(status, &body); err != nil {
					t.Fatal(err)
				}
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(cmp.Or(tc.code, http.StatusForbidden))
					_, _ = w.Write(body.Bytes())
				}))
				defer server.Close()
				var log strings.Builder
				denials := NewDenials(slog.New(slog.NewTextHandler(&log, nil)))
				config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{Version: "v1"}}, Impersonate: rest.ImpersonationConfig{UserName: tc.as}}
				denials.Observe(config)
				client, err := rest.HTTPClientFor(config)
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.Get(server.URL + cmp.Or(tc.path, "/api/v1/pods"))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, body.Bytes()) {
					t.Errorf("the caller reads %q (%v), want %q", got, err, body.Bytes())
				}
				if got := testutil.ToFloat64(denials.Counter); got != tc.want {
					t.Errorf("got %v denials, want %v", got, tc.want)
				}
				if got := strings.Contains(log.String(), DenialMessage); got != (tc.want > 0) {
					t.Errorf("the log contains %q", log.String())
				}
			})
		}
	}
}
