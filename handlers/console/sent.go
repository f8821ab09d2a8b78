package console

import (
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CheckSent returns what is wrong with the metadata of an object that a program saves: its
// kind is another, or it is not the one of the address. It sets the name of that one. noun is
// what users call the object.
func CheckSent(c echo.Context, kind *metav1.TypeMeta, object *metav1.ObjectMeta, want, noun string) error {
	wrong := governance.FieldErrors{}
	if v := kind.APIVersion; v != "" && v != v1alpha1.GroupVersion.String() {
		wrong.Add("apiVersion", "is "+v+", want "+v1alpha1.GroupVersion.String())
	}
	if kind.Kind != "" && kind.Kind != want {
		wrong.Add("kind", "is "+kind.Kind+", want "+want)
	}
	switch name := c.Param("name"); {
	case name == "" && object.Name == "":
		wrong.Add("metadata.name", "is missing")
	case name != "" && object.Name != "" && object.Name != name:
		wrong.Add("metadata.name", "is "+object.Name+", want "+name)
	case name != "" && object.ResourceVersion == "":
		wrong.Add("metadata.resourceVersion", "is missing: read the "+noun+" first, and send its version")
	case name != "":
		object.Name = name
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "save " + noun, Message: "Some values are not valid.", Fields: wrong}
	}
	return nil
}

// RequestOf identifies a request by its user and its idempotency key; empty without a key.
func RequestOf(c echo.Context) string {
	key := c.Request().Header.Get("Idempotency-Key")
	if key == "" {
		return ""
	}
	return web.KeyOf(UserOf(c).Name, key)
}
