-- Estimates of when a task starts, the first of each Workload. When it started is in
-- spans.

-- +goose Up
CREATE TABLE estimates (
	part        TEXT COLLATE "C" PRIMARY KEY,
	task        TEXT COLLATE "C" NOT NULL, -- UID
	team        TEXT COLLATE "C" NOT NULL,
	class       TEXT COLLATE "C" NOT NULL,
	made        BIGINT NOT NULL,
	low_ms      BIGINT NOT NULL, -- the range, from made on
	high_ms     BIGINT NOT NULL,
	forecast_ms BIGINT NOT NULL
);
CREATE INDEX estimates_made ON estimates (made);
