-- Version 5: what an emulated device executed.

ALTER TABLE run ADD COLUMN executed TEXT;
