// Package web is the HTTP platform: the server and its limits, the headers
// that keep a page safe, who is asking, rendering, error pages and event
// streams. It knows no Kubernetes and no Kueue.
package web
