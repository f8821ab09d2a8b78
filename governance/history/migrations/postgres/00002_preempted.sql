-- Preempted is written as Kueue writes it.

-- +goose Up
UPDATE tasks SET state = 'Preempted' WHERE state = 'Pre-empted';
UPDATE steps SET what = 'Preempted' WHERE what = 'Pre-empted';
