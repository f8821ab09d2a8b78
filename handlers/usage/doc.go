// Package usage answers the report of who used which compute, as a page and as files.
package usage
