-- What tasks used of each pool, from when they reserved quota until they released it. A
-- run that ended is divided at midnight UTC, so that no row of a range begins before its
-- first day.

-- +goose Up
CREATE TABLE task_usage (
	resource  TEXT COLLATE "C" NOT NULL,
	began     BIGINT NOT NULL,
	part      TEXT COLLATE "C" NOT NULL, -- UID of the Workload
	pool      TEXT COLLATE "C" NOT NULL,
	ended     BIGINT NOT NULL, -- 0 while it goes on
	amount    BIGINT NOT NULL,
	preempted BIGINT NOT NULL, -- 1 if a preemption ended the run
	task      TEXT COLLATE "C" NOT NULL, -- UID
	team      TEXT COLLATE "C" NOT NULL,
	class     TEXT COLLATE "C" NOT NULL,
	kind      TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (resource, began, part, pool)
);
CREATE INDEX task_usage_task ON task_usage (task);
CREATE INDEX task_usage_open ON task_usage (resource) WHERE ended = 0;
