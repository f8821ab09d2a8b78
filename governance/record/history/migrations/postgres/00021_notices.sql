-- The last step of which persons were notified; -1 before the first.

-- +goose Up
ALTER TABLE state ADD COLUMN noticed BIGINT NOT NULL DEFAULT -1;
