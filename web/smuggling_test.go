package web_test

import (
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/web/webtest"
)

// A request with an ambiguous end is refused, or is the last of its connection: what
// follows is never handled as a request of another user.
func TestAmbiguousRequestEnds(t *testing.T) {
	t.Parallel()
	c := start(t, webtest.Setup{})
	own := "Host: " + strings.TrimPrefix(c.URL, "http://") + "\r\nContent-Type: application/x-www-form-urlencoded\r\nCookie: kuota=" + c.Browser(t).SignIn().Cookie("kuota").Value + "\r\n"
	post := "POST /form HTTP/1.1\r\n" + own
	next := "GET /me HTTP/1.1\r\n" + own + "Connection: close\r\n\r\n"
	for name, tc := range map[string]struct {
		sent string
		want []int
	}{
		"one end":                       {post + "Content-Length: 3\r\n\r\na=b" + next, []int{200, 200}},
		"one end, in chunks":            {post + "Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n" + next, []int{200, 200}},
		"two lengths":                   {post + "Content-Length: 3\r\nContent-Length: 100\r\n\r\na=b" + next, []int{400}},
		"a list of lengths":             {post + "Content-Length: 3, 3\r\n\r\na=b" + next, []int{400}},
		"a length with a sign":          {post + "Content-Length: +3\r\n\r\na=b" + next, []int{400}},
		"a length below zero":           {post + "Content-Length: -3\r\n\r\na=b" + next, []int{400}},
		"a length in other digits":      {post + "Content-Length: 0x3\r\n\r\na=b" + next, []int{400}},
		"a length too long to be one":   {post + "Content-Length: 99999999999999999999\r\n\r\na=b" + next, []int{400}},
		"chunks, and not":               {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + next, []int{501}},
		"chunks of something packed":    {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + next, []int{501}},
		"chunks by another name":        {post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + next, []int{501}},
		"a space before the colon":      {post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + next, []int{400}},
		"an odd space before the value": {post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + next, []int{400}},
		"chunks of HTTP 1.0":            {"POST /form HTTP/1.0\r\n" + own + "Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n" + next, []int{200}},
		"chunks that end with LF":       {post + "Transfer-Encoding: chunked\r\n\r\n3\na=b\n0\n\n" + next, []int{400}},
		"LF in a chunk's extension":     {post + "Transfer-Encoding: chunked\r\n\r\n3;x\n\r\na=b\r\n0\r\n\r\n" + next, []int{400}},
		"a chunk below zero":            {post + "Transfer-Encoding: chunked\r\n\r\n-3\r\na=b\r\n0\r\n\r\n" + next, []int{400}},
		"a chunk longer than can be":    {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\na=b\r\n0\r\n\r\n" + next, []int{400}},
		"a chunk longer than it says":   {post + "Transfer-Encoding: chunked\r\n\r\n3\r\na=bcd\r\n0\r\n\r\n" + next, []int{400}},
		"CR in a header":                {post + "X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next, []int{400}},
		"a zero in a header":            {post + "X: a\x00b\r\n\r\n" + next, []int{400}},
		"a header without a name":       {post + ": a\r\n\r\n" + next, []int{400}},
		"two hosts":                     {"GET /me HTTP/1.1\r\n" + own + own + "\r\n" + next, []int{400}},
		"no host":                       {"GET /me HTTP/1.1\r\n\r\n" + next, []int{400}},
		"no host in HTTP 1.0":           {"GET /me HTTP/1.0\r\n\r\n" + next, []int{421}},
		"another host in the address":   {"GET http://evil.example/me HTTP/1.1\r\n" + own + "Connection: close\r\n\r\n" + next, []int{421}},
		"HTTP 0.9":                      {"GET /me\r\n\r\n" + next, []int{400}},
		"HTTP 2 without TLS":            {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + next, []int{421}},
		"a way to somewhere else":       {"CONNECT evil.example:443 HTTP/1.1\r\n" + own + "Connection: close\r\n\r\n" + next, []int{421}},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.posts()
			statuses, text := raw(t, c.URL, tc.sent)
			if !slices.Equal(statuses, tc.want) {
				t.Errorf("answers are %v, want %v: %s", statuses, tc.want, text)
			}
			if saved := c.posts() - before; (saved == 1) != (tc.want[0] == 200) {
				t.Errorf("%d forms were saved", saved)
			}
		})
	}
}
