-- Which deliveries are to be sent is read every second.

-- +goose Up
CREATE INDEX deliveries_due ON deliveries (receiver, created) WHERE due > 0;
