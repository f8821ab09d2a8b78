package e2e_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
)

// proxy is a proxy that passes the base path to a console, and is itself all other
// applications of the host. A page of the console that requests anything of theirs gets an
// error, which visit reports.
type proxy struct {
	*httptest.Server
	console chan *url.URL // receives once
}

// newProxy starts a proxy, which answers once to was called.
func newProxy() *proxy {
	p := &proxy{console: make(chan *url.URL, 1)}
	pass := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		console := <-p.console
		p.console <- console
		r.Out.URL.Scheme, r.Out.URL.Host = console.Scheme, console.Host // Host and path stay
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == base || strings.HasPrefix(r.URL.Path, base+"/") {
			pass.ServeHTTP(w, r)
			return
		}
		http.Error(w, "this is another application", http.StatusTeapot)
	}))
	return p
}

// to sets the address of the console.
func (p *proxy) to(console string) error {
	address, err := url.Parse(console)
	if err == nil {
		p.console <- address
	}
	return err
}
