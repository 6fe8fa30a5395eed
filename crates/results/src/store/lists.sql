-- The lists of a run as version 7 keeps them, of the tables of the versions before.
(SELECT json_group_array(json_array(at_ns, duration_ns, offered, forwarded, stolen_ns,
        ran_ns, waited_ns, sender_waited_ns, variant, slice, valid) ORDER BY position)
    FROM sample s WHERE s.run = r.run) AS samples,
(SELECT json_group_array(json_array(name, before, after, expected) ORDER BY position)
    FROM counter s WHERE s.run = r.run) AS counters,
(SELECT json_group_array(json_array(cpu, role, user_ns, system_ns, softirq_ns, idle_ns,
        stolen_ns) ORDER BY position)
    FROM cpu s WHERE s.run = r.run) AS cpus,
(SELECT json_group_array(json_array(step, duration_ns) ORDER BY position)
    FROM overhead s WHERE s.run = r.run) AS overhead
