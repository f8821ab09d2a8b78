package ui

import (
	"context"
	"strings"

	"github.com/a-h/templ"
)

// baseKey is the key of the base path in a context.
type baseKey struct{}

// WithBase returns a context in which At puts addresses under a base path, such as
// "/kuota"; empty for the root of the host.
func WithBase(ctx context.Context, base string) context.Context {
	return context.WithValue(ctx, baseKey{}, base)
}

// At returns an address as an attribute has it: one of the console, which begins with a
// slash, lies under the base path of ctx. Others are replaced if their scheme could run a
// script.
func At[T ~string](ctx context.Context, address T) templ.SafeURL {
	switch {
	case strings.HasPrefix(string(address), "/"):
		base, _ := ctx.Value(baseKey{}).(string)
		return templ.SafeURL(base + string(address))
	case strings.HasPrefix(string(address), "?"), strings.HasPrefix(string(address), "#"):
		return templ.SafeURL(address)
	}
	return templ.URL(string(address))
}
