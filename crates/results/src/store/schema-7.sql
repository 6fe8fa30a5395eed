-- Version 7: what a run has several of is a list in its row, which costs a fraction of rows
-- of their own. The tables of before are views. `listed` is made of lists.sql.

ALTER TABLE run ADD COLUMN samples TEXT NOT NULL DEFAULT '[]';
ALTER TABLE run ADD COLUMN counters TEXT NOT NULL DEFAULT '[]';
ALTER TABLE run ADD COLUMN cpus TEXT NOT NULL DEFAULT '[]';
ALTER TABLE run ADD COLUMN overhead TEXT NOT NULL DEFAULT '[]';
UPDATE run SET (samples, counters, cpus, overhead) =
    (SELECT samples, counters, cpus, overhead FROM listed WHERE listed.run = run.run);
DROP VIEW listed;
DROP TABLE sample;
DROP TABLE counter;
DROP TABLE cpu;
DROP TABLE overhead;

CREATE VIEW sample AS
    SELECT run, key AS position, value ->> 0 AS at_ns, value ->> 1 AS duration_ns,
        value ->> 2 AS offered, value ->> 3 AS forwarded, value ->> 4 AS stolen_ns,
        value ->> 5 AS ran_ns, value ->> 6 AS waited_ns, value ->> 7 AS sender_waited_ns,
        value ->> 8 AS variant, value ->> 9 AS slice, value ->> 10 AS valid
    FROM run, json_each(run.samples);

CREATE VIEW counter AS
    SELECT run, key AS position, value ->> 0 AS name, value ->> 1 AS before,
        value ->> 2 AS after, value ->> 3 AS expected
    FROM run, json_each(run.counters);

CREATE VIEW cpu AS
    SELECT run, key AS position, value ->> 0 AS cpu, value ->> 1 AS role,
        value ->> 2 AS user_ns, value ->> 3 AS system_ns, value ->> 4 AS softirq_ns,
        value ->> 5 AS idle_ns, value ->> 6 AS stolen_ns
    FROM run, json_each(run.cpus);

CREATE VIEW overhead AS
    SELECT run, key AS position, value ->> 0 AS step, value ->> 1 AS duration_ns
    FROM run, json_each(run.overhead);
