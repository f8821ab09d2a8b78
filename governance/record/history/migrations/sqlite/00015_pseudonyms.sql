-- The random key of the pseudonyms of persons, in at most one row.

-- +goose Up
CREATE TABLE pseudonym_key (secret TEXT NOT NULL);
