package web

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

// A long table changes in a few rows at a time. Of those that a page has already,
// an update only says that they stay: <tr id="…" data-keep></tr>, which the page's
// script leaves as they are.
var (
	rowBegins = []byte(`<tr id="`)
	rowEnds   = []byte("</tr>")
	rowSeed   = maphash.MakeSeed()
)

// rows are the table rows with an id that a page has, by that id, as hashes of
// their HTML.
type rows map[string]uint64

// update is what to send of html to a page that has some rows, and which rows it
// has then.
func (had rows) update(html []byte) (short []byte, has rows) {
	has = rows{}
	var out bytes.Buffer
	for {
		begin := bytes.Index(html, rowBegins)
		if begin < 0 {
			break
		}
		id, _, ended := bytes.Cut(html[begin+len(rowBegins):], []byte(`"`))
		size := bytes.Index(html[begin:], rowEnds)
		if !ended || size < 0 {
			break
		}
		row := html[begin : begin+size+len(rowEnds)]
		out.Write(html[:begin])
		hash := maphash.Bytes(rowSeed, row)
		if was, known := had[string(id)]; known && was == hash {
			fmt.Fprintf(&out, `<tr id="%s" data-keep></tr>`, id)
		} else {
			out.Write(row)
		}
		has[string(id)] = hash
		html = html[begin+len(row):]
	}
	out.Write(html)
	return out.Bytes(), has
}
