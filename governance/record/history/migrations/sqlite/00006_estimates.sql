-- Estimates of when a task starts, the first of each Workload. When it started is in
-- spans.

-- +goose Up
CREATE TABLE estimates (
	part        TEXT PRIMARY KEY,
	task        TEXT NOT NULL, -- UID
	team        TEXT NOT NULL,
	class       TEXT NOT NULL,
	made        INTEGER NOT NULL,
	low_ms      INTEGER NOT NULL, -- the range, from made on
	high_ms     INTEGER NOT NULL,
	forecast_ms INTEGER NOT NULL
);
CREATE INDEX estimates_made ON estimates (made);
