package forms

import (
	"net/http"
	"net/url"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Addresses seals the values of a form into an address and reads them back. Pages
// with forms embed it.
type Addresses struct{ Sealer Sealer }

// Sealer puts the values of a form into an address and reads them back;
// web.Server is one.
type Sealer interface {
	FormAddress(c echo.Context, page, path string, values url.Values) (string, bool)
	FormInAddress(c echo.Context, path string) (url.Values, error)
}

// ReviewURL returns the address of the review of the form that is sent to path.
func ReviewURL(path string) string { return path + "/review" }

// Posted reads a posted form, without the values that only addresses have. A preview, by which the
// script renders the form again, still says that the values come from before the sign-in.
func Posted(c echo.Context) (url.Values, error) {
	values, err := web.FormValues(c)
	values.Del(RefusedField)
	values.Del(TriedField)
	if action := values.Get("action"); action != "preview" && action != "verify" {
		values.Del("resumed")
	}
	return values, err
}

// TypedValues returns the values in the address of this request, typed into the
// form that is sent to path; nil where there are none. lost reports that the
// address has values that cannot be shown.
func (h *Addresses) TypedValues(c echo.Context, path string) (values url.Values, lost bool) {
	values, err := h.Sealer.FormInAddress(c, path)
	return values, err != nil
}

// RedirectToForm answers a POST with the address of page that has the values of
// the form that is sent to path. It returns false where it cannot, because the
// values do not fit into an address, or need not: the request is no POST, or the
// page's script asks for a fragment.
func (h *Addresses) RedirectToForm(c echo.Context, page, path string, values url.Values) (bool, error) {
	if c.Request().Method != http.MethodPost || web.WantsFragment(c) {
		return false, nil
	}
	values.Set("as", console.UserOf(c).Name)
	address, fits := h.Sealer.FormAddress(c, page, path, values)
	if !fits {
		return false, nil
	}
	return true, c.Redirect(http.StatusSeeOther, address)
}

// AnswerForm answers with a page about the values of the form that is sent to
// path: a POST by a redirect to its address, everything else with the page itself.
func (h *Addresses) AnswerForm(c echo.Context, status int, address, path string, values url.Values, page templ.Component) error {
	if redirected, err := h.RedirectToForm(c, address, path, values); redirected {
		return err
	}
	return web.Render(c, status, page)
}

// RedirectWithoutForm answers GET of a review whose address has no values that can
// be shown with a redirect to the form.
func RedirectWithoutForm(c echo.Context, path string, lost bool) error {
	if lost {
		path += "?" + url.Values{"form": {"lost"}}.Encode()
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// InPlace reports whether a page answers a POST under the address of its form,
// since its values did not fit into an address. The script then keeps them.
func InPlace(c echo.Context) bool { return c.Request().Method == http.MethodPost }

// TriedField marks the answer to a review or a save with invalid values, whose
// status is 422.
const TriedField = "tried"

// RefusedField has the error of a save that failed.
const RefusedField = "refused"

// AnswerOf returns what SetAnswer added; 200 for a page without an answer.
func AnswerOf(values url.Values) (status int, refused *governance.Error) {
	if refused = RefusalOf(values); refused == nil {
		return http.StatusOK, nil
	}
	return console.Statuses[refused.Kind], refused
}

// SetAnswer adds the answer to the values of a form: the HTTP status, and the error
// of a save that failed.
func SetAnswer(values url.Values, status int, refused *governance.Error) {
	if status == http.StatusUnprocessableEntity {
		values.Set(TriedField, "true")
	}
	if refused == nil {
		return
	}
	list := []string{strconv.Itoa(int(refused.Kind)), refused.Message}
	for _, f := range refused.Fields {
		list = append(list, f.Path, f.Message)
	}
	values[RefusedField] = list
}

// RefusalOf reads the error of a save that failed; nil for none.
func RefusalOf(values url.Values) *governance.Error {
	list := values[RefusedField]
	if len(list) < 2 || len(list)%2 != 0 {
		return nil
	}
	number, err := strconv.Atoi(list[0])
	kind := governance.Kind(number)
	if _, known := console.Statuses[kind]; err != nil || !known || kind == governance.Internal {
		return nil
	}
	refused := &governance.Error{Kind: kind, Op: "save", Message: list[1]}
	for i := 2; i < len(list); i += 2 {
		refused.Fields = append(refused.Fields, governance.FieldError{Path: list[i], Message: list[i+1]})
	}
	return refused
}
