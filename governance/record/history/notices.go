package history

import (
	"context"
	"time"
)

// TaskEvent is the first start, the end or a preemption of a task that a person submitted.
type TaskEvent struct {
	Person                      string
	Team, Namespace, Kind, Name string // of the task
	Type                        string // as tasks.Happened
	State                       string // of the task now
}

// taskEventColumns are columns of tasks t and steps s.
const taskEventColumns = "t.submitter, t.team, t.namespace, t.kind, t.name, s.what, t.state"

// row returns the fields of taskEventColumns.
func (e *TaskEvent) row() []any {
	return []any{textColumn(&e.Person), &e.Team, &e.Namespace, &e.Kind, &e.Name, &e.Type, &e.State}
}

// taskEvents selects the steps that are a TaskEvent. A task has one start, however often it is
// admitted and of however many slices it is, and one end: that of its last Workload.
const taskEvents = `(s.what = 'Preempted'
	OR s.what = 'Admitted' AND NOT EXISTS (SELECT 1 FROM steps AS o WHERE o.task = s.task AND o.what = s.what AND o.id < s.id)
	OR s.what = 'Finished' AND t.ended > 0 AND NOT EXISTS (SELECT 1 FROM steps AS o WHERE o.task = s.task AND o.what = s.what AND o.id > s.id))`

// TaskEvents calls do for the events of the tasks of these persons that were recorded since
// the last call of AddNotices, and that happened since a time. It returns until which step it
// read, for AddNotices. Before its first call there are none.
func (s *Store) TaskEvents(ctx context.Context, persons []string, since time.Time, do func(TaskEvent)) (until int64, err error) {
	err = s.read(ctx, "list events of tasks", func(t *tx) error {
		var noticed int64
		if err := t.queryRow("SELECT noticed, (SELECT COALESCE(MAX(id), 0) FROM steps) FROM state", nil, &noticed, &until); err != nil {
			return err
		}
		if noticed < 0 || noticed >= until { // also if the last steps were deleted
			return nil
		}
		return keyBatches(persons, func(list string, args []any) error {
			query := "SELECT " + taskEventColumns + " FROM steps AS s JOIN tasks AS t ON t.id = s.task WHERE s.id > ? AND s.id <= ? AND s.at >= ? AND t.submitter IN (" + list + ") AND " + taskEvents + " ORDER BY s.id"
			return t.query(query, append([]any{noticed, until, toMillis(since)}, args...), func(scan scanFunc) error {
				var e TaskEvent
				err := scan(e.row()...)
				if err == nil {
					do(e)
				}
				return err
			})
		})
	})
	return until, err
}

// AddNotices records messages that are to be sent, and until which step events are in messages.
func (s *Store) AddNotices(ctx context.Context, list []Delivery, until int64) error {
	rows := make([][]any, 0, len(list))
	for i := range list {
		rows = append(rows, list[i].row())
	}
	return s.write(ctx, "add notices", func(t *tx) error {
		if err := t.exec("UPDATE state SET noticed = ?", until); err != nil {
			return err
		}
		return t.insert("deliveries ("+deliveryColumns+")", rows, "", nil)
	})
}

// DropDelivery deletes a message: one to a person is not kept after it was delivered.
func (s *Store) DropDelivery(ctx context.Context, id string) error {
	return s.write(ctx, "drop a delivery", func(t *tx) error { return t.exec("DELETE FROM deliveries WHERE id = ?", id) })
}
