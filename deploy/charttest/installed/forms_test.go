package installed

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// visitor is a browser without scripts.
type visitor struct{ *http.Client }

// visit opens a page and signs in as a user of the cluster's provider, or another one,
// if a sign-in page asks for it. transport may be nil.
func visit(t *testing.T, address, user string, transport http.RoundTripper) visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := visitor{&http.Client{Jar: jar, Timeout: 30 * time.Second, Transport: transport}}
	response, page := v.open(t, address)
	for range 5 {
		if response.Request.URL.String() == address {
			return v
		}
		action, values := formOf(page, "", true)
		for name, value := range map[string]string{"username": user, "login": user, "password": "kuota-" + user} {
			if values.Has(name) {
				values.Set(name, value)
			}
		}
		target, err := response.Request.URL.Parse(action)
		if err != nil {
			t.Fatal(err)
		}
		response, page = v.send(t, target.String(), values)
	}
	t.Fatalf("sign in as %s: got address %s with %s, want %s", user, response.Request.URL, response.Status, address)
	return v
}

// open requests a page like a browser does.
func (v visitor) open(t *testing.T, address string) (*http.Response, *html.Node) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.do(t, request)
}

// send submits a form.
func (v visitor) send(t *testing.T, address string, values url.Values) (*http.Response, *html.Node) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(t, request)
}

func (v visitor) do(t *testing.T, request *http.Request) (*http.Response, *html.Node) {
	t.Helper()
	request.Header.Set("Accept", "text/html")
	response, err := v.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := html.Parse(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, page
}

// text requests an address, and returns the status and the body.
func (v visitor) text(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := v.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// save opens a page, changes values of the form with this ID, and saves it. It fails
// the test unless the response is a redirect to an address that contains done.
func (v visitor) save(t *testing.T, address, id string, changes map[string]string, done string) {
	t.Helper()
	response, page := v.open(t, address)
	action, values := formOf(page, id, false)
	if response.StatusCode != http.StatusOK || action == "" {
		t.Fatalf("%s: got %s and no form %s", address, response.Status, id)
	}
	for name, value := range changes {
		values.Set(name, value)
	}
	values.Set("action", "save")
	target, err := response.Request.URL.Parse(action)
	if err != nil {
		t.Fatal(err)
	}
	direct := *v.Client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, page = visitor{&direct}.send(t, target.String(), values)
	if location := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || !strings.Contains(location, done) {
		if strings.Contains(location, "?form=") { // the form with its errors
			_, page = v.open(t, response.Request.URL.Scheme+"://"+response.Request.URL.Host+location)
		}
		t.Fatalf("save: got %s to %q, want 303 to %q: %s", response.Status, location, done, textOf(find(page, "form-errors")))
	}
}

// formOf returns the action and the values of a form, the first one if id is empty.
// buttons includes the values of buttons.
func formOf(page *html.Node, id string, buttons bool) (action string, values url.Values) {
	values = url.Values{}
	form := page
	if id != "" {
		form = find(page, id)
	}
	var inside bool
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		name, value := attribute(n, "name"), attribute(n, "value")
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "form":
			if inside && id == "" { // a second form
				return
			}
			inside, action = true, attribute(n, "action")
		case name == "":
		case n.Data == "input":
			switch kind := attribute(n, "type"); {
			case (kind == "radio" || kind == "checkbox") && !has(n, "checked"):
			case kind == "submit" && !buttons:
			default:
				values.Add(name, value)
			}
		case n.Data == "button" && buttons:
			values.Add(name, value)
		case n.Data == "textarea":
			values.Add(name, textOf(n))
		case n.Data == "select":
			values.Add(name, selected(n))
		}
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			walk(child)
		}
	}
	if form != nil {
		walk(form)
	}
	return action, values
}

// selected returns the value of the selected option, or of the first one.
func selected(list *html.Node) (value string) {
	found, first := false, true
	for option := range list.Descendants() {
		if option.Data != "option" || found {
			continue
		}
		if found = has(option, "selected"); found || first {
			value, first = attribute(option, "value"), false
		}
	}
	return value
}

// find returns the element with an ID, or nil.
func find(page *html.Node, id string) *html.Node {
	for n := range page.Descendants() {
		if n.Type == html.ElementNode && attribute(n, "id") == id {
			return n
		}
	}
	return nil
}

// textOf returns the text of an element; empty for nil.
func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var text strings.Builder
	for child := range n.Descendants() {
		if child.Type == html.TextNode {
			text.WriteString(child.Data)
		}
	}
	return text.String()
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}
