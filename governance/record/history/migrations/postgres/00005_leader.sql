-- The only row: the number of terms. Only the replica that began the last one writes.

-- +goose Up
CREATE TABLE leader (
	epoch BIGINT NOT NULL
);
INSERT INTO leader VALUES (0);
