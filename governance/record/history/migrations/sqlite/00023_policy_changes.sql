-- What users changed of the policies of elastic tasks.

-- +goose Up
ALTER TABLE scale_events ADD COLUMN changes TEXT NOT NULL DEFAULT ''; -- as JSON
