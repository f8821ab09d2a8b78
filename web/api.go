package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

// APIPrefix is where the paths of all endpoints begin.
const APIPrefix = "/api/v1"

// Endpoint is an address of the API. It takes a bearer token, and never the session of a
// browser. Tokens of service accounts only read, except of those with
// User.Writes.
type Endpoint struct {
	Method  string
	Path    string // below APIPrefix, with the parameters that Echo reads, such as /tasks/:namespace
	Summary string // imperative, without a period
	Query   []Parameter
	Body    any  // a value of the type of the body; nil for none
	Answer  any  // a value of the type of the answer; nil for text
	Status  int  // of an answer without an error; 0 for 200
	Keyed   bool // whether it reads the header Idempotency-Key
	Handler echo.HandlerFunc
}

// Parameter is a value of a query.
type Parameter struct{ Name, About string }

// Problem is the answer to a request of the API that failed (RFC 9457).
type Problem struct {
	Type   string  `json:"type"` // about:blank: the status says it
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail"`           // what is wrong and what to do
	Errors []Field `json:"errors,omitempty"` // of fields of the body
}

// Field is what is wrong with a field of a body.
type Field struct {
	Field   string `json:"field,omitempty"` // its path, such as spec.quota[0].instances
	Message string `json:"message"`
}

// API registers an endpoint.
func (s *Server) API(e Endpoint) {
	s.endpoints = append(s.endpoints, e)
	handler := s.byToken(limited(e.checked))
	methods := []string{e.Method}
	if e.Method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	s.echo.Match(methods, APIPrefix+e.Path, handler)
}

// APIFile registers an endpoint whose answer has any length, such as a log.
func (s *Server) APIFile(e Endpoint) {
	s.endpoints = append(s.endpoints, e)
	s.echo.GET(APIPrefix+e.Path, s.byToken(e.Handler))
}

// checked refuses what a write does not read: a misspelled dryRun must not save.
func (e Endpoint) checked(c echo.Context) error {
	if e.Method == http.MethodGet {
		return e.Handler(c)
	}
	var wrong []Field
	for name, values := range c.QueryParams() {
		i := slices.IndexFunc(e.Query, func(p Parameter) bool { return p.Name == name })
		switch {
		case i < 0:
			wrong = append(wrong, Field{name, "is not read here"})
		case strings.HasPrefix(e.Query[i].About, "true ") && (len(values) != 1 || values[0] != "true" && values[0] != "false"):
			wrong = append(wrong, Field{name, "is neither true nor false"})
		}
	}
	if !e.Keyed && c.Request().Header.Get("Idempotency-Key") != "" {
		wrong = append(wrong, Field{"Idempotency-Key", "is not read here"})
	}
	if len(wrong) > 0 {
		return &Error{Status: http.StatusUnprocessableEntity, Message: "Some values are not valid, and nothing was changed.", Fields: wrong}
	}
	return e.Handler(c)
}

// Endpoints returns all endpoints in the order of their registration.
func (s *Server) Endpoints() []Endpoint { return slices.Clone(s.endpoints) }

// isAPI reports whether a request is for the API.
func isAPI(request *http.Request) bool {
	return strings.HasPrefix(request.URL.Path, APIPrefix+"/")
}

// Limits of requests of the API for each user, on each replica: a burst, then a rate.
const (
	apiRate  = 50 // per second
	apiBurst = 500
)

// byToken calls next for requests with a bearer token, as its user.
func (s *Server) byToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.signIn != nil && bearer(c.Request()) == "" {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
			return &Error{Status: http.StatusUnauthorized, Message: "The API takes a bearer token. Sign in with kuota login, or use the token of a service account."}
		}
		return s.authenticated(func(c echo.Context) error {
			user := UserOf(c)
			if !s.requests.allow(user.Name) {
				c.Response().Header().Set(echo.HeaderRetryAfter, "1")
				return &Error{Status: http.StatusTooManyRequests, Message: "You send too many requests. Wait a second, then try again."}
			}
			if method := c.Request().Method; user.ServiceAccount && !user.Writes && method != http.MethodGet && method != http.MethodHead {
				return &Error{Status: http.StatusForbidden, Message: "The token of this service account only reads. Ask a cluster admin to allow the account to write (--writing-accounts), or let it change objects of Kubernetes itself, with kubectl."}
			}
			return next(c)
		}, true)(c)
	}
}

// userLimits limits the requests of each user.
type userLimits struct {
	mu    sync.Mutex
	users map[string]*rate.Limiter
}

// maxLimited bounds the memory of limits: beyond it all are forgotten.
const maxLimited = 10_000

func (l *userLimits) allow(user string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == nil || len(l.users) >= maxLimited {
		l.users = map[string]*rate.Limiter{}
	}
	limit, ok := l.users[user]
	if !ok {
		limit = rate.NewLimiter(apiRate, apiBurst)
		l.users[user] = limit
	}
	return limit.Allow()
}

// KeyOf identifies a request by its user and its idempotency key, in 32 characters of a label.
func KeyOf(user, key string) string {
	sum := sha256.Sum256([]byte(user + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}

// ReadJSON reads the body of a request of the API into a pointer. Fields that it does not have
// are an error.
func ReadJSON(c echo.Context, into any) error {
	wrong := func(status int, message string, err error) error {
		return &Error{Status: status, Message: message, Err: err}
	}
	if kind, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType)); err != nil || kind != echo.MIMEApplicationJSON {
		return wrong(http.StatusUnsupportedMediaType, "Send the body as JSON, with the header Content-Type: application/json.", err)
	}
	decoder := json.NewDecoder(c.Request().Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			return wrong(http.StatusBadRequest, "The body has more than one JSON value.", more)
		}
		return nil
	}
	if errors.Is(err, echo.ErrStatusRequestEntityTooLarge) {
		return echo.ErrStatusRequestEntityTooLarge
	}
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return &Error{
			Status: http.StatusUnprocessableEntity, Message: "Some values are not valid.", Err: err,
			Fields: []Field{{typed.Field, "is " + typed.Value + ", want " + jsonType(typed.Type)}},
		}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &Error{Status: http.StatusUnprocessableEntity, Message: "Some values are not valid.", Err: err, Fields: []Field{{strings.Trim(name, `"`), "is no field here"}}}
	}
	return wrong(http.StatusBadRequest, "The body is no JSON, or not complete.", err)
}

// jsonType returns the JSON type of a Go type.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "object"
	}
	return "number"
}
