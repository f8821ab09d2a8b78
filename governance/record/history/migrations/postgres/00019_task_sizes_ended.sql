-- What is forgotten is read without all rows.

-- +goose Up
CREATE INDEX task_sizes_ended ON task_sizes (ended);
