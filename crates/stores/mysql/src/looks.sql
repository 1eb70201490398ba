-- What is only looked at: the store, then a line for each; and the sleep of those who wait for news.

DROP PROCEDURE IF EXISTS tenure_look
//
CREATE PROCEDURE tenure_look(ns {text}, elec {text}, sess {text}) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    CALL tenure_begin(store);
    SELECT JSON_OBJECT('store', store, 'seen',
        JSON_EXTRACT((SELECT r.record FROM tenure_records r WHERE r.namespace = ns AND r.election = elec), '$'));
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_list_candidates
//
CREATE PROCEDURE tenure_list_candidates(ns {text}, elec {text}) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    CALL tenure_begin(store);
    SELECT store;
    SELECT JSON_OBJECT('node', c.node, 'priority', c.priority) FROM tenure_standing c
        WHERE c.namespace = ns AND c.election = elec ORDER BY c.priority DESC, c.arrival;
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_list_elections
//
CREATE PROCEDURE tenure_list_elections(ns {text}) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    CALL tenure_begin(store);
    SELECT store;
    SELECT JSON_OBJECT('election', r.election, 'record', JSON_EXTRACT(r.record, '$')) FROM tenure_records r
        WHERE r.namespace = ns AND r.events > 0 ORDER BY r.election;
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_list_nodes
//
CREATE PROCEDURE tenure_list_nodes(ns {text}) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    CALL tenure_begin(store);
    SELECT store;
    SELECT JSON_OBJECT('node', s.node, 'hostname', s.hostname, 'address', s.address, 'pid', s.pid,
        'version', s.version, 'labels', JSON_EXTRACT(s.labels, '$'), 'state', s.state, 'pulse', JSON_EXTRACT(p.pulse, '$'),
        'opened_us', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.opened_at),
        'renewed_us', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.renewed_at), 'problem', s.problem,
        'unhealthy_us', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', s.unhealthy_since))
        FROM tenure_sessions s JOIN tenure_pulses p ON p.id = s.id
        WHERE s.namespace = ns ORDER BY s.node, s.opened_at;
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_list_events
//
-- The newest are chosen from the end, and told from the beginning.
CREATE PROCEDURE tenure_list_events(ns {text}, elec {text}, after BIGINT, most BIGINT, newest TINYINT) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    SET most = COALESCE(most, 9223372036854775807);
    CALL tenure_begin(store);
    SELECT store;
    IF elec IS NULL THEN
        IF newest THEN
            -- Whatever is not among them is before them.
            SELECT COALESCE(MIN(o.id) - 1, after) INTO after FROM (SELECT v.id FROM tenure_events v
                WHERE v.namespace = ns AND v.id > after ORDER BY v.id DESC LIMIT most) o;
        END IF;
        SELECT JSON_OBJECT('id', v.id, 'sequence', v.sequence,
            'time_us', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v.time), 'kind', v.kind, 'election', v.election,
            'node', v.node, 'term', v.term, 'data', JSON_EXTRACT(v.data, '$'))
            FROM tenure_events v WHERE v.namespace = ns AND v.id > after ORDER BY v.id LIMIT most;
    ELSE
        IF newest THEN
            SELECT COALESCE(MIN(o.id) - 1, after) INTO after FROM (SELECT v.id FROM tenure_events v
                WHERE v.namespace = ns AND v.election = elec AND v.id > after ORDER BY v.sequence DESC LIMIT most) o;
        END IF;
        SELECT JSON_OBJECT('id', v.id, 'sequence', v.sequence,
            'time_us', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v.time), 'kind', v.kind, 'election', v.election,
            'node', v.node, 'term', v.term, 'data', JSON_EXTRACT(v.data, '$'))
            FROM tenure_events v WHERE v.namespace = ns AND v.election = elec AND v.id > after
            ORDER BY v.sequence LIMIT most;
    END IF;
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_examine
//
CREATE PROCEDURE tenure_examine() READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    CALL tenure_begin(store);
    SELECT JSON_OBJECT(
        'store', store,
        'version', @@version,
        'flush', @@GLOBAL.innodb_flush_log_at_trx_commit,
        'binary_log', IF(@@GLOBAL.log_bin, 1, 0),
        'sync_binlog', @@GLOBAL.sync_binlog,
        'binlog_format', @@GLOBAL.binlog_format,
        'cluster', (SELECT v.VARIABLE_VALUE FROM {variables} v WHERE v.VARIABLE_NAME = 'wsrep_on'),
        'layout', (SELECT m.version FROM tenure_meta m),
        'triggers', (SELECT COUNT(*) FROM information_schema.TRIGGERS t
                     WHERE t.TRIGGER_SCHEMA = DATABASE() AND t.TRIGGER_NAME LIKE 'tenure\_%'),
        'most', @@GLOBAL.max_connections,
        'used', (SELECT CAST(v.VARIABLE_VALUE AS SIGNED) FROM {status} v WHERE v.VARIABLE_NAME = 'Threads_connected'),
        'listeners', (SELECT COUNT(*) FROM tenure_listeners l
                      WHERE IS_USED_LOCK(CONCAT('tenure listener ', l.connection)) = l.connection));
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_listen
//
-- Sleeps until something has happened after this id, or for so long. First its last id, then what has happened, as far
-- as it says whom it concerns, in the order of the last time; more than a thousand are not told one by one.
--
-- Without an id: only says the last one, and makes itself known. So whoever changes something either finds this
-- connection, and wakes it up; or has committed before the look below.
CREATE PROCEDURE tenure_listen(ns {text}, after BIGINT, seconds INT) MODIFIES SQL DATA
BEGIN
    DECLARE last, heard BIGINT DEFAULT 0;
    IF after IS NULL THEN
        DO GET_LOCK(CONCAT('tenure listener ', CONNECTION_ID()), 0);
        INSERT INTO tenure_listeners (connection, namespace) VALUES (CONNECTION_ID(), ns)
            ON DUPLICATE KEY UPDATE namespace = ns;
        COMMIT;
    END IF;
    SELECT COALESCE(MAX(h.events), 0) INTO last FROM tenure_histories h WHERE h.namespace = ns;
    IF last <= after THEN
        -- One connection of a server sleeps, and all others wait for the lock that it keeps. If they all slept, a
        -- ring would wait for two seconds now and then: MariaDB has one mutex for all who sleep, a KILL of the
        -- next finds it taken by the last one, who wakes up and waits for the killer, who tries again for so long.
        IF IS_USED_LOCK('tenure sleeper') <=> CONNECTION_ID() THEN
            DO SLEEP(seconds);
        ELSE
            DO GET_LOCK('tenure sleeper', seconds);
        END IF;
        SELECT COALESCE(MAX(h.events), 0) INTO last FROM tenure_histories h WHERE h.namespace = ns;
    END IF;
    SELECT last;
    SELECT JSON_OBJECT('kind', v.kind, 'election', v.election, 'node', v.node) FROM tenure_events v
        WHERE v.namespace = ns AND v.id > after AND v.id <= last
        GROUP BY v.kind, v.election, v.node ORDER BY MAX(v.id) LIMIT 1001;
END
