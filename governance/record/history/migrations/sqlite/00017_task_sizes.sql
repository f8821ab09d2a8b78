-- How much runs of each task that ended used in all, or more, to find the largest tasks.

-- +goose Up
CREATE TABLE task_sizes (
	resource TEXT NOT NULL,
	task     TEXT NOT NULL, -- UID
	team     TEXT NOT NULL,
	bound    INTEGER NOT NULL, -- amount × s; no less than the sum of task_usage
	began    INTEGER NOT NULL, -- of the first run
	ended    INTEGER NOT NULL, -- of the last run
	PRIMARY KEY (resource, task, team)
) WITHOUT ROWID;
CREATE INDEX task_sizes_bound ON task_sizes (resource, bound);
CREATE INDEX task_sizes_team ON task_sizes (resource, team, bound);
