package listing

import (
	"strconv"

	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

const lastPastPage = 500 // readers narrow the search instead

// PageOf parses the page number of an address, from 1.
func PageOf(text string) int {
	n, _ := strconv.Atoi(text)
	return min(max(n, 1), lastPastPage)
}

func Pager(page, size, shown int, more bool, address func(page string) string) (p views.Pager) {
	if page == 1 && !more {
		return p
	}
	p.Text = "Page " + strconv.Itoa(page)
	if shown > 0 {
		p.Text = format.Thousands(int64((page-1)*size+1)) + "–" + format.Thousands(int64((page-1)*size+shown))
	}
	if page > 1 {
		p.PreviousURL = address(PageNumber(page - 1))
	}
	if more && page < lastPastPage {
		p.NextURL = address(strconv.Itoa(page + 1))
	}
	return p
}

// PageNumber formats a page number for an address: "" for the first.
func PageNumber(n int) string {
	if n <= 1 {
		return ""
	}
	return strconv.Itoa(n)
}
