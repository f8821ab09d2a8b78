package history

import "context"

// There are the tasks of which nobody has told yet that they left the cluster.
func (s *Store) LiveTasks(ctx context.Context) ([]Task, error) {
	var there []Task
	err := s.read(ctx, "looking up tasks that are there", func(t *tx) error {
		var err error
		there, err = t.tasks([]string{"gone = ?"}, []any{0}, 1<<31-1)
		return err
	})
	return there, err
}
