package web

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
)

// A submitted form is shown again at an address of its own, with the encrypted
// values in the query, so that Back, Forward and reload are GET requests
// (decision 0028).
const (
	formParameter = "form"       // of the query
	formName      = "kuota-form" // name under which the values are encrypted
	// maxFormAddress bounds the parameter, in bytes. The whole address has to fit
	// into a Location header, a request line and the return address of a sign-in,
	// also behind a proxy with buffers of 4 KiB.
	maxFormAddress = 1900
)

// errFormAddress is returned for values that are invalid here.
var errFormAddress = errors.New("the address has no values for this form and this person")

// addressForm is the content of the query parameter.
type addressForm struct {
	Form   string // path that the form is posted to
	As     string // user who submitted it
	Values string // encoded as a query
}

// FormAddress returns the address of page with the values of the form that is
// posted to path. Only the current user can open it. It returns false if the
// values do not fit into an address.
func (s *Server) FormAddress(c echo.Context, page, path string, values url.Values) (string, bool) {
	packed, err := s.packForm(addressForm{Form: path, As: UserOf(c).Name, Values: values.Encode()})
	if err != nil || len(packed) > maxFormAddress {
		return "", false
	}
	return page + "?" + url.Values{formParameter: {packed}}.Encode(), true
}

// FormInAddress returns the values that FormAddress encoded in the address of this
// request, for the form that is posted to path; nil if the address has none. It
// returns an error if they are for another form or user, or invalid.
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

// packForm encrypts a form. Without sign-in there is one user and no key: the form
// is only compressed.
func (s *Server) packForm(form addressForm) (string, error) {
	if s.signIn != nil {
		return s.seal(formName, form)
	}
	packed, err := compress(form)
	return base64.RawURLEncoding.EncodeToString(packed), err
}

// unpackForm returns the form that packForm encoded.
func (s *Server) unpackForm(packed string) (form addressForm, ok bool) {
	if s.signIn != nil {
		ok = s.open(formName, packed, &form)
		return form, ok
	}
	compressed, err := base64.RawURLEncoding.DecodeString(packed)
	ok = err == nil && decompress(compressed, &form)
	return form, ok
}
