// Package imports reads the objects that somebody brings, in whatever of the
// notations that Kuota knows, and lists what of them was not taken. The
// notations themselves are others': hyperpod's and manifest's.
//
// It is pure: no client, no context, no clock.
package imports
