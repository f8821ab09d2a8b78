// Package console has what every page embeds: the frame around a page, the user of a
// request and what they may do, answers to errors, files to download, and the
// interfaces of the backends that pages read and write.
package console
