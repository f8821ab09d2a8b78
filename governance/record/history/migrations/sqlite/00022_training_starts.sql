-- Starts of the workers of trainings, from which the work that interruptions cost follows.

-- +goose Up
CREATE TABLE training_starts (
	task           TEXT NOT NULL, -- UID
	at             INTEGER NOT NULL,
	continued_from INTEGER NOT NULL, -- when the checkpoint was written; 0 if unknown
	PRIMARY KEY (task, at)
) WITHOUT ROWID;
CREATE INDEX training_starts_at ON training_starts (at);
