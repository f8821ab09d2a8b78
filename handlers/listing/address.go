package listing

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// Address is the address of a list: its path, and the values that select, sort and
// page it. Values has only what was taken, so that links do not carry the rest.
type Address struct {
	Path     string
	PageName string // name of the value that has the page
	Values   url.Values
}

// NewAddress returns the address of the list at path, without values.
func NewAddress(path, pageName string) Address {
	return Address{Path: path, PageName: pageName, Values: url.Values{}}
}

// Take returns the value called name, without spaces around it, and keeps it.
func (a Address) Take(values url.Values, name string) string {
	value := strings.TrimSpace(values.Get(name))
	if value != "" {
		a.Values.Set(name, value)
	}
	return value
}

// TakeAll returns the distinct values called name, in their order, and keeps them.
func (a Address) TakeAll(values url.Values, name string) (taken []string) {
	for _, value := range values[name] {
		if value != "" && !slices.Contains(taken, value) {
			taken = append(taken, value)
		}
	}
	if len(taken) > 0 {
		a.Values[name] = taken
	}
	return taken
}

// TakeDays returns the range of the days in from= and to=, in UTC, and keeps them. The
// range ends after the last day; a zero time is no bound. problem is a sentence about
// invalid days.
func (a Address) TakeDays(values url.Values) (from, to time.Time, problem string) {
	dayOf := func(name string) time.Time {
		text := a.Take(values, name)
		at, err := time.Parse(time.DateOnly, text)
		if err != nil && text != "" {
			problem = "Write dates as YYYY-MM-DD."
		}
		return at
	}
	if from, to = dayOf("from"), dayOf("to"); !to.IsZero() {
		to = to.Add(24 * time.Hour)
	}
	if problem == "" && !to.IsZero() && !from.Before(to) {
		problem = "The first day is after the last."
	}
	return from, to, problem
}

// With returns the address with some values changed; an empty value removes its name.
func (a Address) With(pairs ...string) string { return urls.With(a.Path, a.Values, pairs...) }

// URL is With for another path, such as that of the list as a file.
func (a Address) URL(path string, pairs ...string) string { return urls.With(path, a.Values, pairs...) }

// Column is a column of a list.
type Column[T any] struct {
	ui.Head
	Compare func(a, b T) int // ascending; nil for a column that the list is not sorted by, except for the first
}

// TakeSort returns the column to sort by, and whether descending, of those that can be sorted
// by, and keeps them; empty for none.
func TakeSort[T any](a Address, values url.Values, columns []Column[T]) (by string, descending bool) {
	by, descending = a.Take(values, "sort"), a.Take(values, "order") == "desc"
	if !descending {
		a.Values.Del("order")
	}
	if !slices.ContainsFunc(columns, func(c Column[T]) bool { return c.ID == by && c.Compare != nil }) {
		a.Values.Del("sort")
		a.Values.Del("order")
		return "", false
	}
	return by, descending
}

// Order returns the order of a list by the column called by. The first column decides between
// equal items, and is the order if there is no such column.
func Order[T any](columns []Column[T], by string, descending bool) func(a, b T) int {
	i := max(0, slices.IndexFunc(columns, func(c Column[T]) bool { return c.ID == by && c.Compare != nil }))
	return func(a, b T) int {
		order := columns[i].Compare(a, b)
		if descending {
			order = -order
		}
		return cmp.Or(order, columns[0].Compare(a, b))
	}
}

// Head returns the column with the link that sorts by it, on the first page. The
// list is sorted by the column called by. The first click on a column sorts it
// descending if descendingFirst. ascending is the value of order= for the other way.
func (a Address) Head(column ui.Head, by string, descending, descendingFirst bool, ascending string) ui.Head {
	order := ascending
	if descendingFirst {
		order = "desc"
	}
	if column.ID == by {
		column.Sorted, order = "ascending", "desc"
		if descending {
			column.Sorted, order = "descending", ascending
		}
	}
	column.URL = a.With("sort", column.ID, "order", order, a.PageName, "")
	return column
}

// Bounds returns the part of a list of n items that is on a page, and the page: the
// nearest one that exists.
func Bounds(page, size, n int) (from, to, existing int) {
	existing = min(max(page, 1), max(1, (n+size-1)/size))
	return (existing - 1) * size, min(existing*size, n), existing
}

// Part returns which of n items a file has: those of the page that the address names, and how many
// pages there are, or without a page all.
func Part(asked string, size, n int) (from, to, page, pages int) {
	if asked == "" {
		return 0, n, 0, 0
	}
	number, _ := strconv.Atoi(asked)
	from, to, page = Bounds(number, size, n)
	return from, to, page, max(1, (n+size-1)/size)
}

// Pager links to the pages beside a page that shows items from to to of n; empty
// where all are on one.
func (a Address) Pager(page, from, to, n int) (p views.Pager) {
	if from == 0 && to >= n {
		return p
	}
	p.Text = format.Thousands(int64(from+1)) + "–" + format.Thousands(int64(to)) + " of " + format.Thousands(int64(n))
	if page > 1 {
		p.PreviousURL = a.With(a.PageName, PageNumber(page-1))
	}
	if to < n {
		p.NextURL = a.With(a.PageName, PageNumber(page+1))
	}
	return p
}

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
