-- Version 8: ceilings of mixes of frame sizes.

ALTER TABLE calibration ADD COLUMN mix TEXT;
