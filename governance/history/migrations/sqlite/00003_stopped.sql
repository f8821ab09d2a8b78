-- A task whose Workload is deactivated is called Stopped everywhere.

-- +goose Up
UPDATE tasks SET state = 'Stopped' WHERE state = 'Paused';
