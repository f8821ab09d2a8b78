-- Tasks whose Workload is deactivated have the state Stopped.

-- +goose Up
UPDATE tasks SET state = 'Stopped' WHERE state = 'Paused';
