package history

import (
	"context"
	"slices"
	"time"
)

// TrainingStart is a start of the workers of a training. TaskUID and At identify it.
type TrainingStart struct {
	TaskUID       string
	At            time.Time
	ContinuedFrom time.Time // when the checkpoint was written that they continued from; zero if unknown
}

const trainingColumns = "task, at, continued_from"

func (s *TrainingStart) row() []any {
	return []any{&s.TaskUID, timeColumn(&s.At), timeColumn(&s.ContinuedFrom)}
}

// RecordTrainingStarts records starts of trainings. Recording the same again changes nothing.
func (s *Store) RecordTrainingStarts(ctx context.Context, starts []TrainingStart) error {
	var rows [][]any
	for _, start := range starts {
		rows = append(rows, start.row())
	}
	return s.write(ctx, "record starts of trainings", func(t *tx) error {
		return t.insert("training_starts ("+trainingColumns+")", rows, "ON CONFLICT (task, at) DO NOTHING", nil)
	})
}

// TrainingStarts returns the latest starts of the workers of a task, limit at most, by time.
func (s *Store) TrainingStarts(ctx context.Context, taskUID string, limit int) (found []TrainingStart, err error) {
	found, err = readList(ctx, s, "list starts of trainings", (*TrainingStart).row, "SELECT "+trainingColumns+" FROM training_starts WHERE task = ? ORDER BY at DESC LIMIT ?", taskUID, limit)
	slices.Reverse(found)
	return found, err
}
