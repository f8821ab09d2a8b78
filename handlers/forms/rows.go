package forms

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Row returns the inputs of one row by the last part of their names.
type Row[T any] interface {
	*T
	Fields() map[string]*string
}

// ReadRows reads inputs named start, N, hyphen, part, in the order of N; at most most
// rows. A row can read other parts than those of Fields by a method Other.
func ReadRows[T any, P Row[T]](values url.Values, start string, most int) []T {
	posted := map[int]T{}
	for name := range values {
		rest, ok := strings.CutPrefix(name, start)
		number, part, ok2 := strings.Cut(rest, "-")
		index, err := strconv.Atoi(number)
		if !ok || !ok2 || err != nil || index < 0 {
			continue
		}
		one, value := posted[index], strings.TrimSpace(values.Get(name))
		if field := P(&one).Fields()[part]; field != nil {
			*field = value
			posted[index] = one
		} else if more, ok := any(&one).(interface{ Other(part, value string) bool }); ok && more.Other(part, value) {
			posted[index] = one
		}
	}
	indices := slices.Sorted(maps.Keys(posted))
	var list []T
	for _, index := range indices[:min(len(indices), most)] {
		list = append(list, posted[index])
	}
	return list
}

// WriteRows sets the values that ReadRows reads.
func WriteRows[T any, P Row[T]](values url.Values, start string, list []T) {
	for i := range list {
		for part, field := range P(&list[i]).Fields() {
			values.Set(start+strconv.Itoa(i)+"-"+part, *field)
		}
	}
}

// Add appends a row unless there are most already.
func Add[T any](list []T, one T, most int) []T {
	if len(list) >= most {
		return list
	}
	return append(list, one)
}

// Remove deletes the row with this number, if there is one.
func Remove[T any](list []T, number string) []T {
	if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(list) {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Filled returns the row of the form for each row of the spec, which has no empty
// rows.
func Filled[T any](list []T, empty func(T) bool) []int {
	var positions []int
	for i, one := range list {
		if !empty(one) {
			positions = append(positions, i)
		}
	}
	return positions
}
