package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/web"
	"kuota.dev/kuota/web/webtest"

	"github.com/labstack/echo/v4"
)

// TestAPI checks what all endpoints share: a token of a person writes, one of a service account
// reads unless the account may write, a session does neither, and errors are problems.
func TestAPI(t *testing.T) {
	type body struct {
		Name string   `json:"name"`
		Pods int32    `json:"pods"`
		Of   []string `json:"of"`
	}
	c := webtest.Start(t, webtest.Setup{
		Register: func(s *web.Server) {
			s.API(web.Endpoint{Method: http.MethodGet, Path: "/who", Handler: func(c echo.Context) error { return c.String(http.StatusOK, "hello "+web.UserOf(c).Name) }})
			s.API(web.Endpoint{Method: http.MethodPost, Path: "/what", Handler: func(c echo.Context) error {
				var sent body
				if err := web.ReadJSON(c, &sent); err != nil {
					return err
				}
				return c.String(http.StatusOK, web.UserOf(c).Name+" sends "+sent.Name)
			}})
			s.API(web.Endpoint{Method: http.MethodDelete, Path: "/it", Query: []web.Parameter{{Name: "dryRun", About: "true changes nothing"}, {Name: "reason", About: "why"}}, Handler: func(echo.Context) error {
				return &web.Error{Status: http.StatusConflict, Message: "It changed.", Fields: []web.Field{{Field: "a", Message: "is old"}}}
			}})
		},
		Tokens: func(_ context.Context, token string) (web.User, error) {
			switch token {
			case "ada":
				return web.User{Name: "ada"}, nil
			case "robot":
				return web.User{Name: "robot", ServiceAccount: true}, nil
			case "writer":
				return web.User{Name: "writer", ServiceAccount: true, Writes: true}, nil
			case "many":
				return web.User{Name: "many"}, nil
			}
			return web.User{}, web.ErrToken
		},
	})
	ask := func(method, path, token, sent string, headers ...string) webtest.Response {
		return c.Browser(t).Ask(method, path, sent, append([]string{"Authorization", "Bearer " + token}, headers...)...)
	}
	isJSON := []string{"Content-Type", "application/json"}
	deep := strings.Repeat("[", 20_000)
	for name, tc := range map[string]struct {
		method, path, token, sent string
		headers                   []string
		status                    int
		want                      string
	}{
		"reads":                     {"GET", "/api/v1/who", "ada", "", nil, 200, "hello ada"},
		"a service account reads":   {"GET", "/api/v1/who", "robot", "", nil, 200, "hello robot"},
		"writes":                    {"POST", "/api/v1/what", "ada", `{"name": "x"}`, isJSON, 200, "ada sends x"},
		"with a charset":            {"POST", "/api/v1/what", "ada", `{"name": "x"}`, []string{"Content-Type", "application/json; charset=utf-8"}, 200, "ada sends x"},
		"a service account writes":  {"POST", "/api/v1/what", "robot", `{"name": "x"}`, isJSON, 403, "kubectl"},
		"a service account deletes": {"DELETE", "/api/v1/it", "robot", "", nil, 403, "--writing-accounts"},
		"one that is allowed":       {"POST", "/api/v1/what", "writer", `{"name": "x"}`, isJSON, 200, "writer sends x"},
		"a wrong token":             {"POST", "/api/v1/what", "eve", `{"name": "x"}`, isJSON, 401, "not accepted"},
		"a form":                    {"POST", "/api/v1/what", "ada", "name=x", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "application/json"},
		"no type":                   {"POST", "/api/v1/what", "ada", `{"name": "x"}`, nil, 415, "application/json"},
		"nothing":                   {"POST", "/api/v1/what", "ada", "", isJSON, 400, "no JSON"},
		"cut off":                   {"POST", "/api/v1/what", "ada", `{"name": "x`, isJSON, 400, "no JSON"},
		"two values":                {"POST", "/api/v1/what", "ada", `{"name": "x"} {}`, isJSON, 400, "more than one"},
		"an unknown field":          {"POST", "/api/v1/what", "ada", `{"nam": "x"}`, isJSON, 422, `"field":"nam"`},
		"another type":              {"POST", "/api/v1/what", "ada", `{"name": 3}`, isJSON, 422, `"message":"is number, want string"`},
		"too large a number":        {"POST", "/api/v1/what", "ada", `{"pods": 99999999999}`, isJSON, 422, `"field":"pods"`},
		"deep nesting":              {"POST", "/api/v1/what", "ada", `{"of": ` + deep, isJSON, 400, "no JSON"},
		"too large":                 {"POST", "/api/v1/what", "ada", `{"name": "` + strings.Repeat("x", 10<<20) + `"}`, isJSON, 413, "too large"},
		"an error":                  {"DELETE", "/api/v1/it", "ada", "", nil, 409, `"errors":[{"field":"a","message":"is old"}]`},
		"an unknown query":          {"DELETE", "/api/v1/it?dryrun=true", "ada", "", nil, 422, `"field":"dryrun"`},
		"neither true nor false":    {"DELETE", "/api/v1/it?dryRun=All&reason=x", "ada", "", nil, 422, "neither true nor false"},
		"a key that is not read":    {"DELETE", "/api/v1/it", "ada", "", []string{"Idempotency-Key", "x"}, 422, "Idempotency-Key"},
		"a known query":             {"DELETE", "/api/v1/it?dryRun=true&reason=x", "ada", "", nil, 409, "It changed"},
		"no endpoint":               {"GET", "/api/v1/none", "ada", "", nil, 404, "404"},
		"another method":            {"PUT", "/api/v1/who", "ada", "", isJSON, 405, "405"},
		"of another site":           {"POST", "/api/v1/what", "ada", `{"name": "x"}`, append([]string{"Sec-Fetch-Site", "cross-site"}, isJSON...), 403, "another site"},
	} {
		response := ask(tc.method, tc.path, tc.token, tc.sent, tc.headers...)
		var problem web.Problem
		if response.StatusCode >= 400 && (json.Unmarshal([]byte(response.Text), &problem) != nil || problem.Status != tc.status || problem.Detail == "" || response.Header.Get("Content-Type") != "application/problem+json") {
			t.Errorf("%s: the answer is no problem of %d: %.300s", name, tc.status, response.Text)
		}
		if response.StatusCode != tc.status || !strings.Contains(response.Text, tc.want) {
			t.Errorf("%s: got status %d, want %d with %q: %.300s", name, response.StatusCode, tc.status, tc.want, response.Text)
		}
	}
	limited := 0
	for range 700 {
		if response := ask("GET", "/api/v1/who", "many", ""); response.StatusCode == http.StatusTooManyRequests {
			if limited++; response.Header.Get("Retry-After") == "" {
				t.Fatal("the answer does not say when to try again")
			}
		}
	}
	if response := ask("GET", "/api/v1/who", "ada", ""); limited == 0 || response.StatusCode != http.StatusOK {
		t.Errorf("of 700 requests of one user %d are too many; another user gets status %d", limited, response.StatusCode)
	}
}
