package web

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

// Updates of a long table change few rows. Each row that did not change is sent
// as <tr id="…" data-keep></tr>, which the page's script leaves as it is.
var (
	rowStart = []byte(`<tr id="`)
	rowEnd   = []byte("</tr>")
	rowSeed  = maphash.MakeSeed()
)

// rows are the table rows of a page: hashes of their HTML by their id.
type rows map[string]uint64

// update returns html without the content of rows that the page has already, and
// the rows of the page afterwards.
func (r rows) update(html []byte) (short []byte, now rows) {
	now = rows{}
	var out bytes.Buffer
	for {
		begin := bytes.Index(html, rowStart)
		if begin < 0 {
			break
		}
		id, _, ended := bytes.Cut(html[begin+len(rowStart):], []byte(`"`))
		size := bytes.Index(html[begin:], rowEnd)
		if !ended || size < 0 {
			break
		}
		row := html[begin : begin+size+len(rowEnd)]
		out.Write(html[:begin])
		hash := maphash.Bytes(rowSeed, row)
		if before, known := r[string(id)]; known && before == hash {
			fmt.Fprintf(&out, `<tr id="%s" data-keep></tr>`, id)
		} else {
			out.Write(row)
		}
		now[string(id)] = hash
		html = html[begin+len(row):]
	}
	out.Write(html)
	return out.Bytes(), now
}
