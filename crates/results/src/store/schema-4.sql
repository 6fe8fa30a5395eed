-- Version 4: evidence of what was taken from the device, and what else a run observed.

ALTER TABLE sample ADD COLUMN ran_ns INTEGER;
ALTER TABLE sample ADD COLUMN waited_ns INTEGER;
ALTER TABLE sample ADD COLUMN sender_waited_ns INTEGER;
ALTER TABLE run ADD COLUMN arrivals TEXT;
ALTER TABLE run ADD COLUMN device TEXT;
ALTER TABLE run ADD COLUMN opening TEXT;
