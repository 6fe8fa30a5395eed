-- Version 9: the bed that an invocation measured on.

ALTER TABLE invocation ADD COLUMN bed TEXT;
