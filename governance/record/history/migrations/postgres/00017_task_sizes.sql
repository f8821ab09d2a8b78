-- How much runs of each task that ended used in all, or more, to find the largest tasks.

-- +goose Up
CREATE TABLE task_sizes (
	resource TEXT COLLATE "C" NOT NULL,
	task     TEXT COLLATE "C" NOT NULL, -- UID
	team     TEXT COLLATE "C" NOT NULL,
	bound    BIGINT NOT NULL, -- amount × s; no less than the sum of task_usage
	began    BIGINT NOT NULL, -- of the first run
	ended    BIGINT NOT NULL, -- of the last run
	PRIMARY KEY (resource, task, team)
);
CREATE INDEX task_sizes_bound ON task_sizes (resource, bound);
CREATE INDEX task_sizes_team ON task_sizes (resource, team, bound);
