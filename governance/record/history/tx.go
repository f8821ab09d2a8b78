package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
)

// maxBatch bounds the rows or keys of one statement.
const maxBatch = 256

// tx is a transaction with its context.
type tx struct {
	*sql.Tx
	*dialect
	ctx context.Context
}

// scanFunc reads the columns of one row.
type scanFunc = func(...any) error

func (t *tx) exec(query string, args ...any) error {
	_, err := t.ExecContext(t.ctx, t.rebind(query), args...)
	return err
}

// execCount is exec and returns the number of affected rows.
func (t *tx) execCount(query string, args ...any) (int64, error) {
	result, err := t.ExecContext(t.ctx, t.rebind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// queryRow reads one row; it returns sql.ErrNoRows if there is none.
func (t *tx) queryRow(query string, args []any, into ...any) error {
	return t.QueryRowContext(t.ctx, t.rebind(query), args...).Scan(into...)
}

// query calls do for every row.
func (t *tx) query(query string, args []any, do func(scanFunc) error) error {
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

// list returns the rows of a query. row returns where the columns of one are read to.
func list[V any](t *tx, row func(*V) []any, query string, args ...any) (found []V, err error) {
	err = t.query(query, args, func(scan scanFunc) error {
		var v V
		err := scan(row(&v)...)
		found = append(found, v)
		return err
	})
	return found, err
}

// values returns the only column of a query.
func values[V any](t *tx, query string, args ...any) ([]V, error) {
	return list(t, func(v *V) []any { return []any{v} }, query, args...)
}

// readList is list in a transaction of its own.
func readList[V any](ctx context.Context, s *Store, op string, row func(*V) []any, query string, args ...any) (found []V, err error) {
	err = s.read(ctx, op, func(t *tx) (err error) {
		found, err = list(t, row, query, args...)
		return err
	})
	return found, err
}

// conditions are the conditions of a query, which AND joins, with their arguments.
type conditions struct {
	terms []string
	args  []any
}

// add adds a condition.
func (c *conditions) add(term string, args ...any) {
	c.terms, c.args = append(c.terms, term), append(c.args, args...)
}

// equal adds that a column has a value, unless the value is empty.
func (c *conditions) equal(column, value string) {
	if value != "" {
		c.add(column+" = ?", value)
	}
}

// in adds that a column has one of values.
func (c *conditions) in(column string, values []string) {
	c.add(column+" IN ("+placeholders(len(values))+")", anyOf(values)...)
}

// contains adds that a column contains a text, in any case, unless the text is empty.
func (c *conditions) contains(column, text string) {
	if text != "" {
		c.add("lower("+column+`) LIKE ? ESCAPE '\'`, "%"+escapeLike.Replace(strings.ToLower(text))+"%")
	}
}

// String returns the conditions; TRUE for none.
func (c *conditions) String() string { return cmp.Or(strings.Join(c.terms, " AND "), "TRUE") }

// escapeLike escapes the wildcards of LIKE.
var escapeLike = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// insert inserts rows of equal length, many in one statement; suffix follows the
// values. It calls do, if set, for every row that the statement returns.
func (t *tx) insert(into string, rows [][]any, suffix string, do func(scanFunc) error) error {
	return rowBatches(rows, func(values string, args []any) error {
		query := "INSERT INTO " + into + " VALUES " + values + " " + suffix
		if do == nil {
			return t.exec(query, args...)
		}
		return t.query(query, args, do)
	})
}

// queryWith runs query with rows of equal length as the table expression table.
func (t *tx) queryWith(table string, rows [][]any, query string, do func(scanFunc) error) error {
	return rowBatches(rows, func(values string, args []any) error {
		return t.query("WITH "+table+" AS (VALUES "+values+") "+query, args, do)
	})
}

// rowBatches calls do with batches of rows and their placeholders. Batches have
// few different lengths, because databases cache the plan of each statement.
func rowBatches(rows [][]any, do func(values string, args []any) error) error {
	for len(rows) > 0 {
		n := 1
		for n*2 <= min(len(rows), maxBatch) {
			n *= 2
		}
		one := "(" + placeholders(len(rows[0])) + ")"
		if err := do(one+strings.Repeat(","+one, n-1), slices.Concat(rows[:n]...)); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// keyBatches calls do with batches of keys and their placeholders, in few
// different lengths: the last key is repeated to fill a batch.
func keyBatches[K any](keys []K, do func(list string, keys []any) error) error {
	for batch := range slices.Chunk(keys, maxBatch) {
		n := 1
		for n < len(batch) {
			n *= 2
		}
		args := make([]any, n)
		for i := range args {
			args[i] = batch[min(i, len(batch)-1)]
		}
		if err := do(placeholders(n), args); err != nil {
			return err
		}
	}
	return nil
}

// anyOf returns strings as arguments of a statement.
func anyOf[S ~string](values []S) []any {
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	return args
}

// placeholders returns n placeholders.
func placeholders(n int) string { return "?" + strings.Repeat(",?", n-1) }

// Periods in milliseconds.
const (
	hour int64 = 3_600_000
	day        = 24 * hour
)

// floor and ceil round a time to a multiple of period.
func floor(at, period int64) int64 { return at - at%period }
func ceil(at, period int64) int64  { return floor(at+period-1, period) }

// toMillis returns at as the tables store it; 0 for the zero time.
func toMillis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// fromMillis is the inverse of toMillis.
func fromMillis(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}

// timeRange is [from, to) in milliseconds.
type timeRange struct{ from, to int64 }

// splitPeriods returns the whole periods of r and what is left at its edges.
func (r timeRange) splitPeriods(period int64) (whole timeRange, rest []timeRange) {
	whole = timeRange{ceil(r.from, period), floor(r.to, period)}
	if whole.from >= whole.to {
		return timeRange{}, []timeRange{r}
	}
	for _, edge := range []timeRange{{r.from, whole.from}, {whole.to, r.to}} {
		if edge.from < edge.to {
			rest = append(rest, edge)
		}
	}
	return whole, rest
}

// split splits r into whole days, whole hours and the rest.
func (r timeRange) split() (days, hours, rest []timeRange) {
	whole, edges := r.splitPeriods(day)
	if whole.from < whole.to {
		days = append(days, whole)
	}
	for _, edge := range edges {
		whole, parts := edge.splitPeriods(hour)
		if whole.from < whole.to {
			hours = append(hours, whole)
		}
		rest = append(rest, parts...)
	}
	return days, hours, rest
}

// intersect returns the part of r within o; from >= to if there is none.
func (r timeRange) intersect(o timeRange) timeRange {
	return timeRange{max(r.from, o.from), min(r.to, o.to)}
}

// ErrNotLeader is returned for a write after another replica began a term.
var ErrNotLeader = errors.New("another replica of the console writes history now")

// BeginTerm makes this Store the only one that writes: writes of all others that
// began a term fail with ErrNotLeader from now on, also of a replica that was paused
// and continues. It returns SampledUntil, which no other Store changes afterwards.
// A Store that began no term writes without this protection.
func (s *Store) BeginTerm(ctx context.Context) (sampledUntil time.Time, err error) {
	var epoch int64
	err = s.writeAny(ctx, "begin a term", func(t *tx) error {
		if err := t.exec("UPDATE leader SET epoch = epoch + 1"); err != nil {
			return err
		}
		if err := t.queryRow("SELECT epoch FROM leader", nil, &epoch); err != nil {
			return err
		}
		// Sums are complete before the first sample, and not if an earlier version wrote.
		if err := t.exec("UPDATE state SET summed = CASE seen WHEN 0 THEN 0 ELSE -1 END WHERE summed < seen OR EXISTS (SELECT 1 FROM task_usage_days) AND NOT EXISTS (SELECT 1 FROM task_sizes)"); err != nil {
			return err
		}
		known, err := t.state()
		sampledUntil = fromMillis(known.seen)
		return err
	})
	if err == nil {
		s.epoch.Store(epoch)
	}
	return sampledUntil, err
}

// checkTerm returns ErrNotLeader if another Store began a term since this one. The
// lock of the transaction keeps others from beginning one before it ends.
func (t *tx) checkTerm(epoch int64) error {
	if epoch == 0 {
		return nil
	}
	var current int64
	if err := t.queryRow("SELECT epoch FROM leader", nil, &current); err != nil {
		return err
	}
	if current != epoch {
		return ErrNotLeader
	}
	return nil
}
