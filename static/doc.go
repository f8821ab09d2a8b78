// Package static embeds the files that browsers load besides pages: the stylesheet,
// the scripts, the icon, and vendored code with its license and checksums.
//
// It must not know any page: pages get addresses from [URL], and the server mounts
// [Handler] at [Prefix].
package static
