-- What tasks used of each pool, from when they reserved quota until they released it. A
-- run that ended is divided at midnight UTC, so that no row of a range begins before its
-- first day.

-- +goose Up
CREATE TABLE task_usage (
	resource  TEXT NOT NULL,
	began     INTEGER NOT NULL,
	part      TEXT NOT NULL, -- UID of the Workload
	pool      TEXT NOT NULL,
	ended     INTEGER NOT NULL, -- 0 while it goes on
	amount    INTEGER NOT NULL,
	preempted INTEGER NOT NULL, -- 1 if a preemption ended the run
	task      TEXT NOT NULL, -- UID
	team      TEXT NOT NULL,
	class     TEXT NOT NULL,
	kind      TEXT NOT NULL,
	PRIMARY KEY (resource, began, part, pool)
) WITHOUT ROWID;
CREATE INDEX task_usage_task ON task_usage (task);
CREATE INDEX task_usage_open ON task_usage (resource) WHERE ended = 0;
