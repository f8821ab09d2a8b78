-- Who submitted a task, and whose runs these are; empty if unknown.

-- +goose Up
ALTER TABLE tasks ADD COLUMN submitter TEXT NOT NULL DEFAULT '';
ALTER TABLE task_usage ADD COLUMN person TEXT NOT NULL DEFAULT '';
