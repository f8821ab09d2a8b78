// Package handlers registers the routes of the console. The pages are packages
// below it, each with its routes, in Pages.Register:
//
//	dashboard      /                    figures of the cluster
//	hardware       /hardware.csv        utilization of accelerators, shown on the dashboard
//	classstats     /classes.csv         averages by priority class, shown on three pages
//	instances      /instances           pools and nodes
//	teams          /teams, /teams/x     list of teams, usage and past of one, submitting
//	tasks          /tasks               lists, one task, actions, history
//	allocations    /policies            list, form, review and deletion of allocations
//	policy         /policies/cluster    form and review of the cluster policy
//	versions       …/revisions          earlier versions of both
//	imports        /policies/import     YAML and HyperPod text into the two forms
//	settings       /settings            how the console and Kueue are set up
//
// Imports point one way:
//
//	handlers ─→ pages ─→ shared: console (frame, user, errors, files, backends),
//	                     forms, listing, figures, charts, timerange, format, urls
//
// A handler parses its request, calls governance, maps the result to a struct of
// package views, and renders it. It computes no quota and writes no Kubernetes object.
package handlers
