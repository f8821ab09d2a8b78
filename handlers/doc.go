// Package handlers registers the routes of the console. The pages are packages below it,
// each with its routes, in Pages.Register.
//
// Imports point one way:
//
//	handlers ─→ pages ─→ shared: console (frame, user, errors, files, backends),
//	                     forms, listing, figures, charts, timerange, format, urls
//
// A handler parses its request, calls governance, maps the result to a struct of
// package views, and renders it. It computes no quota and writes no Kubernetes object.
package handlers
