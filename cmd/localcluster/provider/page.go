package provider

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS []byte
	page    = template.Must(template.New("page").Parse(pageHTML))
)

// signInView is the view of the page with the form.
type signInView struct {
	Request string // ID of the authorization request
	Name    string // as typed, or the client's login_hint
	Problem string
	Users   []User
}

// messageView is the view of a page with one message.
type messageView struct{ Title, Text string }

func renderSignIn(w http.ResponseWriter, status int, v signInView) { render(w, status, "signin", v) }

func renderMessage(w http.ResponseWriter, status int, title, text string) {
	render(w, status, "message", messageView{Title: title, Text: text})
}

func render(w http.ResponseWriter, status int, name string, view any) {
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, name, view); err != nil {
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	// No form-action: browsers apply it to the redirect after the form too, which
	// leads to the client.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}

func serveCSS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(pageCSS)
}
