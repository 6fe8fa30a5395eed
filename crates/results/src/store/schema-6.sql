-- Version 6: the trials of a method, beside each run's own one.

ALTER TABLE run ADD COLUMN method TEXT;
