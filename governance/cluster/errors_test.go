package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"

	"kuota.dev/kuota/governance"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTranslate(t *testing.T) {
	kind := schema.GroupResource{Group: "kuota.dev", Resource: "computeallocations"}
	for name, tc := range map[string]struct {
		err  error
		want governance.Kind
	}{
		"refused connection": {&url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}, governance.Unavailable},
		"timeout":            {fmt.Errorf("reading: %w", context.DeadlineExceeded), governance.Unavailable},
		"shutting down":      {apierrors.NewServiceUnavailable("apiserver is shutting down"), governance.Unavailable},
		"too many requests":  {apierrors.NewTooManyRequests("wait", 1), governance.Unavailable},
		"unknown trouble":    {apierrors.NewGenericServerResponse(500, "get", kind, "x", "etcdserver: request timed out", 0, true), governance.Unavailable},
		"not found":          {apierrors.NewNotFound(kind, "x"), governance.NotFound},
		"exists":             {apierrors.NewAlreadyExists(kind, "x"), governance.Exists},
		"conflict":           {apierrors.NewConflict(kind, "x", errors.New("changed")), governance.Conflict},
		"forbidden":          {apierrors.NewForbidden(kind, "x", errors.New("no")), governance.Forbidden},
		"anything else":      {errors.New("who knows"), governance.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			got := Translate("test", tc.err)
			if governance.KindOf(got) != tc.want || !errors.Is(got, tc.err) {
				t.Errorf("got kind %d of %v, want %d", governance.KindOf(got), got, tc.want)
			}
		})
	}
	if Translate("test", nil) != nil {
		t.Error("no error became one")
	}
}

func TestPlain(t *testing.T) {
	for message, want := range map[string]string{
		`Invalid value: "object": a row needs a figure`: "a row needs a figure",
		"a team name has letters":                       "a team name has letters",
	} {
		if got := plain(message); got != want {
			t.Errorf("%q became %q", message, got)
		}
	}
}
