// Package usage answers /usage: who used which compute, as a page and as files.
package usage
