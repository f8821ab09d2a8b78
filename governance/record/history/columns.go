package history

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"reflect"
	"time"
)

// column is a field of a row that its table has in another form. A row is a list of pointers
// to fields and of columns: insert writes it, and list reads it.
type column struct {
	value func() (driver.Value, error)
	scan  func(stored any) error
}

// Value implements driver.Valuer.
func (c column) Value() (driver.Value, error) { return c.value() }

// Scan implements sql.Scanner.
func (c column) Scan(stored any) error { return c.scan(stored) }

// columnOf returns the column of a field that is stored as a V.
func columnOf[V any](encode func() (V, error), decode func(V) error) column {
	return column{
		value: func() (driver.Value, error) { return encode() },
		scan: func(stored any) error {
			var v sql.Null[V]
			if err := v.Scan(stored); err != nil {
				return err
			}
			return decode(v.V)
		},
	}
}

// timeColumn stores a time as toMillis returns it.
func timeColumn(t *time.Time) column {
	return columnOf(func() (int64, error) { return toMillis(*t), nil }, func(ms int64) error { *t = fromMillis(ms); return nil })
}

// durationColumn stores a duration as encodeRan returns it.
func durationColumn(d *time.Duration) column {
	return columnOf(func() (int64, error) { return encodeRan(*d), nil }, func(ms int64) error { *d = decodeRan(ms); return nil })
}

// textColumn stores a text without what databases reject.
func textColumn[S ~string](text *S) column {
	return columnOf(func() (string, error) { return sanitize(string(*text)), nil }, func(stored string) error { *text = S(stored); return nil })
}

// jsonColumn stores the JSON of what v points to; zero for its zero value.
func jsonColumn(v any, zero string) column {
	return columnOf(func() (string, error) {
		if reflect.ValueOf(v).Elem().IsZero() {
			return zero, nil
		}
		text, err := json.Marshal(v)
		return string(text), err
	}, func(stored string) error {
		if stored == "" {
			return nil
		}
		return json.Unmarshal([]byte(stored), v)
	})
}
