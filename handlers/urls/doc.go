// Package urls has the addresses of pages that other pages link to.
package urls
