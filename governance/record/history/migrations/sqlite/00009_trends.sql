-- Failures and preemptions of a range, for trends.

-- +goose Up
CREATE INDEX tasks_failed ON tasks (ended) WHERE state = 'Failed';
CREATE INDEX steps_preempted ON steps (at) WHERE what = 'Preempted';
