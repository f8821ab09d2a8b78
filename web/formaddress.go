package web

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
)

// A form that was posted is answered at an address of its own: the values
// travel in its query, sealed, so that Back, Forward and reload ask for it with
// GET. Decision 0028 says why.
const (
	formParameter = "form"       // of the query
	formName      = "kuota-form" // what the values are sealed for
	// maxFormAddress bounds the parameter, in bytes. The whole address has to fit
	// into a Location header, a request line and the address that sign-in returns
	// to, also behind a proxy with buffers of 4 KiB.
	maxFormAddress = 1900
)

// errFormAddress is why the values in an address are not shown.
var errFormAddress = errors.New("the address has no values for this form and this person")

// sentForm is the content of the parameter.
type addressForm struct {
	Form   string // path that the form is sent to
	As     string // who typed it
	Values string // encoded as a query
}

// FormAddress returns the address of page with the values of the form that is
// sent to path, readable only by the user who asks now. It returns false where
// they do not fit into an address.
func (s *Server) FormAddress(c echo.Context, page, path string, values url.Values) (string, bool) {
	packed, err := s.packForm(addressForm{Form: path, As: UserOf(c).Name, Values: values.Encode()})
	if err != nil || len(packed) > maxFormAddress {
		return "", false
	}
	return page + "?" + url.Values{formParameter: {packed}}.Encode(), true
}

// FormInAddress returns the values that FormAddress put into the address of this
// request, for the form that is sent to path; nil where the address has none. It
// returns an error where they are for another form or person, or cannot be read.
func (s *Server) FormInAddress(c echo.Context, path string) (url.Values, error) {
	packed := c.QueryParam(formParameter)
	if packed == "" || c.Request().Method != http.MethodGet && c.Request().Method != http.MethodHead {
		return nil, nil
	}
	form, ok := s.unpackForm(packed)
	if !ok || form.Form != path || form.As != UserOf(c).Name {
		return nil, errFormAddress
	}
	return url.ParseQuery(form.Values)
}

// packForm seals a form where people sign in. Without sign-in there is one user
// and no key: the form is only compressed.
func (s *Server) packForm(form addressForm) (string, error) {
	if s.signIn != nil {
		return s.seal(formName, form)
	}
	packed, err := compress(form)
	return base64.RawURLEncoding.EncodeToString(packed), err
}

// unpackForm reads what packForm made.
func (s *Server) unpackForm(packed string) (form addressForm, ok bool) {
	if s.signIn != nil {
		ok = s.open(formName, packed, &form)
		return form, ok
	}
	compressed, err := base64.RawURLEncoding.DecodeString(packed)
	ok = err == nil && decompress(compressed, &form)
	return form, ok
}
