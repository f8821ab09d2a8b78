// Package handlers answers the routes of the console, one file per page or
// action. A handler parses, asks the domain, maps to a view struct, renders.
package handlers
