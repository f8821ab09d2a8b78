package forms

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Actions of a form. Each form adds smaller ones, such as add-row, that only
// change its values.
const (
	ActionShow   = "show" // show the form with the values of its address; never posted
	ActionReview = "review"
	ActionSave   = "save"
	ActionApply  = "apply"  // save, unless it interrupts tasks: then review
	ActionVerify = "verify" // show the form with what takes longer to compute
)

// Submits reports whether an action needs valid values.
func Submits(action string) bool {
	return action == ActionReview || action == ActionSave || action == ActionApply
}

// conflictTries bounds Retry.
const conflictTries = 3

// Flow is the way of one form from its values to a review or a save.
type Flow struct {
	*Form
	Path   string                                            // address that the form is posted to
	Values func() url.Values                                 // values for its address
	Valid  func() bool                                       // reports whether a review or a save can be tried
	Show   func(status int, refused *governance.Error) error // answers with the form
	Do     func() error                                      // reviews or saves
	Reread Reread
	Done   func() error                          // answers a review or a save that succeeded
	Refuse func(refused *governance.Error) error // answers one that failed
}

// Reread returns the current version and generation of the object that a form
// changes; ok is false if it cannot be read, or if the form creates an object.
type Reread func() (version, generation string, ok bool)

// Run answers an action: with the form while its values are invalid or the action
// only changes them, then with the review or the result of the save.
func (h *Addresses) Run(c echo.Context, action string, f Flow) error {
	switch {
	case action == ActionShow && f.Refused != nil:
		return f.Show(console.Statuses[f.Refused.Kind], f.Refused)
	case (f.Tried || Submits(action)) && !f.Valid():
		return f.Show(http.StatusUnprocessableEntity, nil)
	case !Submits(action):
		return f.Show(http.StatusOK, nil)
	case action == ActionReview:
		if redirected, err := h.RedirectToForm(c, ReviewURL(f.Path), f.Path, f.Values()); redirected {
			return err
		}
	}
	err := f.Retry(f.Do, f.Reread)
	if err == nil {
		return f.Done()
	}
	if refused := Refusal(err); refused != nil {
		return f.Refuse(refused)
	}
	return err
}

// Retry calls do, and again with the new f.Version after a conflict where only the
// status of the object changed: its generation is the same.
func (f *Form) Retry(do func() error, reread Reread) error {
	for try := 1; ; try++ {
		err := do()
		if governance.KindOf(err) != governance.Conflict || try == conflictTries {
			return err
		}
		version, generation, ok := reread()
		if !ok || generation != f.Generation || version == f.Version {
			return err
		}
		f.Version = version
	}
}

// Refusal returns the error that a form shows; nil for internal errors, which have
// a page of their own.
func Refusal(err error) *governance.Error {
	var refused *governance.Error
	if !errors.As(err, &refused) || refused.Kind == governance.Internal {
		return nil
	}
	return refused
}

// Failure returns the message of a refusal that names no field.
func Failure(refused *governance.Error) string {
	if refused == nil || len(refused.Fields) > 0 {
		return ""
	}
	return refused.Message
}

// Take answers the values of a form and the action on it.
type Take func(c echo.Context, values url.Values, action string) error

// Post answers POST of a form.
func Post(take Take) echo.HandlerFunc {
	return func(c echo.Context) error {
		values, err := Posted(c)
		if err != nil {
			return err
		}
		return take(c, values, values.Get("action"))
	}
}

// Review answers GET of the review of the form at path, from the values in the
// address.
func (h *Addresses) Review(path func(echo.Context) string, take Take) echo.HandlerFunc {
	return func(c echo.Context) error {
		values, lost := h.TypedValues(c, path(c))
		if values == nil {
			return RedirectWithoutForm(c, path(c), lost)
		}
		return take(c, values, ActionReview)
	}
}

// Draft returns the values that were posted after the session ended; nil if there
// are none. It redirects to their address if they fit into one.
func Draft(c echo.Context, s *web.Server, path string) (typed url.Values, redirected bool, err error) {
	if typed = s.Draft(c); typed == nil {
		return nil, false, nil
	}
	typed.Set("resumed", "true")
	if address, fits := s.FormAddress(c, path, path, typed); fits {
		return nil, true, c.Redirect(http.StatusSeeOther, address)
	}
	return typed, false, nil
}

// ReasonField returns the input for the reason of a change, in a review.
func ReasonField(reason, readers string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the history to %s. At most %d characters.", readers, v1alpha1.MaxReason)}
}

// DeletionReason returns the input for the reason of a deletion.
func DeletionReason(reason string) views.ReasonField {
	return views.ReasonField{Value: reason, Hint: fmt.Sprintf("Visible in the versions of the deleted team. At most %d characters.", v1alpha1.MaxReason)}
}

// ReasonText returns a typed reason as one line, cut to MaxReason characters.
func ReasonText(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsControl(r) || r == ' ' }), " ")
	if characters := []rune(text); len(characters) > v1alpha1.MaxReason {
		text = string(characters[:v1alpha1.MaxReason])
	}
	return text
}

// WithoutReason removes the reason, for a page that has an input for it.
func WithoutReason(fields []views.HiddenField) []views.HiddenField {
	return slices.DeleteFunc(slices.Clone(fields), func(f views.HiddenField) bool { return f.Name == "reason" })
}

func RestoresWords(number int64) string { return fmt.Sprintf("Restores version %d", number) }

// RestoredOf returns the notice of a form that a version filled in.
func RestoredOf(from string) views.Restored {
	if from == "" {
		return views.Restored{}
	}
	_, number, ok := strings.Cut(from, ":")
	if !ok {
		number = from
	}
	return views.Restored{Origin: from, Notice: "The form shows version " + number + ". Nothing is saved yet."}
}
