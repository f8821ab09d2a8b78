-- Preempted is spelled as in Kueue.

-- +goose Up
UPDATE tasks SET state = 'Preempted' WHERE state = 'Pre-empted';
UPDATE steps SET what = 'Preempted' WHERE what = 'Pre-empted';
