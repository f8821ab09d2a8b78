package history

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
)

// most is how many rows or keys one statement has at most.
const most = 256

// tx is a transaction with its context.
type tx struct {
	*sql.Tx
	*dialect
	ctx context.Context
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.ExecContext(t.ctx, t.rebind(query), args...)
	return err
}

// changed is exec, telling how many rows it was about.
func (t *tx) changed(query string, args ...any) (int64, error) {
	result, err := t.ExecContext(t.ctx, t.rebind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads one row; sql.ErrNoRows where there is none.
func (t *tx) row(query string, args []any, into ...any) error {
	return t.QueryRowContext(t.ctx, t.rebind(query), args...).Scan(into...)
}

// each calls do for every row of an answer.
func (t *tx) each(query string, args []any, do func(scan func(...any) error) error) error {
	rows, err := t.QueryContext(t.ctx, t.rebind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// insert writes rows of equal length, many in one statement; tail is what follows
// the values. With do it is called for every row that the statement returns.
// Statements come in few lengths only, since databases keep their plans.
func (t *tx) insert(into string, rows [][]any, tail string, do func(scan func(...any) error) error) error {
	return lines(rows, func(values string, args []any) error {
		query := "INSERT INTO " + into + " VALUES " + values + " " + tail
		if do == nil {
			return t.exec(query, args...)
		}
		return t.each(query, args, do)
	})
}

// with asks about rows of equal length, under the name of a table.
func (t *tx) with(table string, rows [][]any, query string, do func(scan func(...any) error) error) error {
	return lines(rows, func(values string, args []any) error {
		return t.each("WITH "+table+" AS (VALUES "+values+") "+query, args, do)
	})
}

// lines calls do with pieces of rows, each with its placeholders.
func lines(rows [][]any, do func(values string, args []any) error) error {
	for len(rows) > 0 {
		n := 1
		for n*2 <= min(len(rows), most) {
			n *= 2
		}
		one := "(" + list(len(rows[0])) + ")"
		if err := do(one+strings.Repeat(","+one, n-1), slices.Concat(rows[:n]...)); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// chunks calls do with pieces of keys, each with the list of placeholders for it.
// Lists come in few lengths only: the last key stands there again, where needed.
func chunks[K any](keys []K, do func(list string, keys []any) error) error {
	for piece := range slices.Chunk(keys, most) {
		n := 1
		for n < len(piece) {
			n *= 2
		}
		args := make([]any, n)
		for i := range args {
			args[i] = piece[min(i, len(piece)-1)]
		}
		if err := do(list(n), args); err != nil {
			return err
		}
	}
	return nil
}

// list is so many placeholders.
func list(n int) string { return "?" + strings.Repeat(",?", n-1) }

// Periods in milliseconds.
const (
	hour int64 = 3_600_000
	day        = 24 * hour
)

// floor and ceil are the bounds of the periods that a time lies between.
func floor(at, period int64) int64 { return at - at%period }
func ceil(at, period int64) int64  { return floor(at+period-1, period) }

// millis is a time as it is kept; none is 0.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// moment reads what millis wrote.
func moment(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}

// stretch is a time from one millisecond to another.
type stretch struct{ from, to int64 }

// whole takes the whole periods out of a stretch; rest are what is left of it at
// its edges.
func (s stretch) whole(period int64) (whole stretch, rest []stretch) {
	whole = stretch{ceil(s.from, period), floor(s.to, period)}
	if whole.from >= whole.to {
		return stretch{}, []stretch{s}
	}
	for _, edge := range []stretch{{s.from, whole.from}, {whole.to, s.to}} {
		if edge.from < edge.to {
			rest = append(rest, edge)
		}
	}
	return whole, rest
}

// divide is a stretch as whole days, whole hours and what is less. Only the first
// may be empty among the days.
func (s stretch) divide() (days, hours, less []stretch) {
	whole, rest := s.whole(day)
	if whole.from < whole.to {
		days = append(days, whole)
	}
	for _, edge := range rest {
		whole, rest := edge.whole(hour)
		if whole.from < whole.to {
			hours = append(hours, whole)
		}
		less = append(less, rest...)
	}
	return days, hours, less
}

// within is the part of a stretch that lies in another; empty where none does.
func (s stretch) within(o stretch) stretch {
	return stretch{max(s.from, o.from), min(s.to, o.to)}
}
