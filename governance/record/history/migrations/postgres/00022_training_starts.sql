-- Starts of the workers of trainings, from which the work that interruptions cost follows.

-- +goose Up
CREATE TABLE training_starts (
	task           TEXT COLLATE "C" NOT NULL, -- UID
	at             BIGINT NOT NULL,
	continued_from BIGINT NOT NULL, -- when the checkpoint was written; 0 if unknown
	PRIMARY KEY (task, at)
);
CREATE INDEX training_starts_at ON training_starts (at);
