// Package static holds what browsers fetch besides pages: the one stylesheet,
// the scripts of our own, the icon, and vendored code with its licence and
// checksums. All of it is in the binary.
//
// It must not know what a page is: pages ask it for addresses by [URL], and
// the server mounts [Handler] at [Prefix].
package static
