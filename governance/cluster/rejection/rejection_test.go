package rejection_test

import (
	"net/http"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/rejection"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// The webhook of Kueue 0.19 writes several errors as one text in brackets.
func TestFieldsSplitsWebhookText(t *testing.T) {
	err := statusError(http.StatusForbidden, metav1.StatusReasonForbidden,
		`admission webhook "v" denied the request: [spec.a[0].b: Invalid value: "1": is too much, or too little, spec.c: Forbidden: is invalid]`)
	want := []governance.FieldError{{Path: "spec.a[0].b", Message: "is too much, or too little"}, {Path: "spec.c", Message: "is invalid"}}
	got, ok := rejection.Fields(err)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("got ok %t (-want +got):\n%s", ok, diff)
	}
}

func TestOtherErrorsAreNoRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		err             error
		wantUnavailable bool
	}{
		"no error":            {},
		"no permission":       {err: statusError(http.StatusForbidden, metav1.StatusReasonForbidden, `clusterqueues.kueue.x-k8s.io is forbidden: User "x" cannot create resource`)},
		"webhook unavailable": {statusError(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "vclusterqueue.kb.io": connection refused`), true},
	} {
		t.Run(name, func(t *testing.T) {
			if fields, ok := rejection.Fields(tc.err); ok {
				t.Errorf("got a rejection of %v, want none", fields)
			}
			if got := rejection.WebhookUnavailable(tc.err); got != tc.wantUnavailable {
				t.Errorf("WebhookUnavailable reports %t, want %t", got, tc.wantUnavailable)
			}
		})
	}
}
