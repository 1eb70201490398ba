-- The rules of the contract. Every verb is one call of one procedure: one statement, one round trip, one
-- transaction, and one answer. Procedures, and no functions: those need rights that few have where a binary
-- log is written. A procedure keeps the sql_mode under which it was made, and each begins its transaction with
-- an isolation of its own, so whatever a server or a session was told, they do the same.
--
-- Locks are taken in one order: elections, then their ledgers, then sessions (by id), then the history. A fenced
-- transaction of the application may hold the row of its election for as long as its client takes, so whoever waits for
-- an election holds no session: a renewal, which needs the row of its session and nothing else, never waits behind it.
-- Under the lock of a session, elections are locked only with SKIP LOCKED, which does not wait.
--
-- What is only looked at is read by a SELECT of its own: a subquery of IF or SET locks what it reads until the end.
--
-- Nothing is inferred from how many rows a statement has changed: that depends on the client (CLIENT_FOUND_ROWS). What
-- decides is written by an UPDATE that names what it was decided on, and read back.

-- `number + 0` in an answer: MariaDB takes a variable for a text there.

DROP PROCEDURE IF EXISTS tenure_open
//
CREATE PROCEDURE tenure_open(ns {text}, kept BIGINT, sess {text}, seq BIGINT, ttl BIGINT, who {text},
    host TEXT CHARACTER SET utf8mb4, addr TEXT CHARACTER SET utf8mb4, process BIGINT, tenure {text},
    words TEXT CHARACTER SET utf8mb4, supersedes {text},
    over_session {text}, over_sequence BIGINT) MODIFIES SQL DATA
opening: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE found INT;
    DECLARE taken TINYINT DEFAULT 0;
    DECLARE own_state, own_namespace, occupant {text};
    DECLARE own_ttl, occupant_sequence BIGINT;
    DECLARE gone MEDIUMTEXT CHARACTER SET utf8mb4;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT COUNT(*) INTO found FROM tenure_sessions WHERE id IN (sess, supersedes, over_session) FOR UPDATE;
    SELECT s.state, s.namespace, s.ttl_ms INTO own_state, own_namespace, own_ttl FROM tenure_sessions s WHERE s.id = sess;
    IF own_state IS NOT NULL THEN
        IF own_state <> 'live' OR own_namespace <> ns THEN
            ROLLBACK;
            SELECT '{"lost": true}';
            LEAVE opening;
        END IF;
        UPDATE tenure_sessions SET sequence = GREATEST(sequence, seq), renewed_at = UTC_TIMESTAMP(6)
            WHERE id = sess AND state = 'live';
        COMMIT;
        SELECT JSON_OBJECT('store', store, 'ttl_ms', own_ttl + 0);
        LEAVE opening;
    END IF;
    -- Looked for before anything is ended: an occupied node id changes nothing.
    SELECT s.id, s.sequence INTO occupant, occupant_sequence FROM tenure_sessions s WHERE s.namespace = ns AND s.alive = who;
    IF occupant IS NOT NULL AND NOT (occupant <=> supersedes) THEN
        IF occupant <=> over_session AND occupant_sequence <=> over_sequence THEN
            CALL tenure_end_session(occupant, 'lapsed', NULL, kept);
        ELSE
            SET taken = 1;
        END IF;
    END IF;
    IF taken = 0 THEN
        IF EXISTS (SELECT 1 FROM tenure_sessions s WHERE s.id = supersedes AND s.namespace = ns) THEN
            CALL tenure_end_session(supersedes, 'superseded', NULL, kept);
        END IF;
        BEGIN
            -- Somebody else was first, this very moment.
            DECLARE CONTINUE HANDLER FOR 1062 SET taken = 1;
            INSERT INTO tenure_sessions (id, namespace, node, hostname, address, pid, version, labels, state,
                                         sequence, ttl_ms, opened_at, renewed_at)
                VALUES (sess, ns, who, LEFT(host, 255), LEFT(addr, 1024), process, tenure, words, 'live',
                        seq, ttl, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));
        END;
        IF taken = 1 THEN
            ROLLBACK;
        END IF;
    END IF;
    IF taken = 1 THEN
        SET occupant = NULL;
        SELECT s.id INTO occupant FROM tenure_sessions s WHERE s.namespace = ns AND s.alive = who;
        IF occupant IS NULL THEN
            SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'the node id became free this moment';
        END IF;
        SELECT JSON_OBJECT('store', store, 'occupant', JSON_EXTRACT(p.pulse, '$')) FROM tenure_pulses p WHERE p.id = occupant;
        COMMIT;
        LEAVE opening;
    END IF;
    -- Drops the ended sessions of a node that is back, and the oldest of those that never came back. Those that an
    -- election still names are looked for without a lock: a session that is over is granted nothing any more.
    SELECT JSON_ARRAYAGG(s.id) INTO gone FROM tenure_sessions s WHERE s.namespace = ns AND s.node = who
        AND s.state <> 'live' AND NOT EXISTS (SELECT 1 FROM tenure_elections e WHERE e.session = s.id);
    IF gone IS NOT NULL THEN
        DELETE s FROM JSON_TABLE(gone, '$[*]' COLUMNS (id VARCHAR(128) PATH '$')) t
            STRAIGHT_JOIN tenure_sessions s FORCE INDEX (PRIMARY)
                ON s.id = CONVERT(t.id USING utf8mb4) COLLATE utf8mb4_bin;
    END IF;
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.namespace = ns AND s.state <> 'live';
    IF found > 1000 THEN
        DELETE FROM tenure_sessions WHERE namespace = ns AND state <> 'live'
            AND NOT EXISTS (SELECT 1 FROM tenure_elections e WHERE e.session = tenure_sessions.id)
            ORDER BY opened_at LIMIT 100;
    END IF;
    CALL tenure_tell_of_node(ns, 'node_joined', who,
        JSON_OBJECT('hostname', host, 'address', addr, 'pid', process + 0, 'version', tenure), kept);
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'ttl_ms', ttl + 0);
    CALL tenure_ring(ns);
END
//
DROP PROCEDURE IF EXISTS tenure_renew
//
-- One row, however much hangs from the session. After that it tells of the elections in whose line the session stands, of
-- the first 200; a renewal fails over none of them.
CREATE PROCEDURE tenure_renew(ns {text}, sess {text}, seq BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE before_sequence, before_notices, before_grants BIGINT;
    DECLARE waits_for MEDIUMTEXT CHARACTER SET utf8mb4;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT s.sequence, s.notices, s.grants INTO before_sequence, before_notices, before_grants FROM tenure_sessions s
        WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' FOR UPDATE;
    UPDATE tenure_sessions SET sequence = GREATEST(sequence, seq), renewed_at = UTC_TIMESTAMP(6)
        WHERE id = sess AND namespace = ns AND state = 'live';
    COMMIT;
    BEGIN
        DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET waits_for = NULL;
        IF EXISTS (SELECT 1 FROM tenure_candidates c WHERE c.session = sess) THEN
            SELECT JSON_ARRAYAGG(JSON_OBJECT('election', r.election, 'record', JSON_EXTRACT(r.record, '$'))) INTO waits_for
                FROM (SELECT c.namespace, c.election FROM tenure_candidates c WHERE c.session = sess
                      ORDER BY c.arrival LIMIT 200) w
                STRAIGHT_JOIN tenure_records r ON r.namespace = w.namespace AND r.election = w.election;
        END IF;
    END;
    SELECT IF(before_sequence IS NULL, '{"lost": true}', JSON_OBJECT('store', store,
        'previous', before_sequence + 0, 'notices', before_notices + 0, 'grants', before_grants + 0,
        'waits_for', JSON_EXTRACT(COALESCE(waits_for, '[]'), '$')));
END
//
DROP PROCEDURE IF EXISTS tenure_close
//
CREATE PROCEDURE tenure_close(ns {text}, kept BIGINT, sess {text}, cause TEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE found INT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    -- Unlike one that has lapsed, a session is closed only when nothing is written under its leases any more.
    SELECT COUNT(*) INTO found FROM tenure_elections WHERE session = sess FOR UPDATE;
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' FOR UPDATE;
    IF found = 1 THEN CALL tenure_end_session(sess, 'closed', cause, kept); END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store);
    IF found = 1 THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_retire
//
-- A session that was silent for its whole life, whether or not anything hangs from it.
CREATE PROCEDURE tenure_retire(ns {text}, kept BIGINT, over_session {text}, over_sequence BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE found INT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.id = over_session AND s.namespace = ns
        AND s.sequence = over_sequence AND s.state = 'live' FOR UPDATE;
    IF found = 1 THEN CALL tenure_end_session(over_session, 'lapsed', NULL, kept); END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'done', found + 0);
    IF found = 1 THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_purge
//
-- Forgets nodes that are no more. The clock that says how old they are decides nothing else.
CREATE PROCEDURE tenure_purge(ns {text}, older_ms BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE found, kept BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.namespace = ns AND s.state <> 'live' FOR UPDATE;
    DELETE FROM tenure_sessions WHERE namespace = ns AND state <> 'live'
        AND TIMESTAMPDIFF(MICROSECOND, renewed_at, UTC_TIMESTAMP(6)) DIV 1000 > older_ms
        AND NOT EXISTS (SELECT 1 FROM tenure_elections e WHERE e.session = tenure_sessions.id);
    SELECT COUNT(*) INTO kept FROM tenure_sessions s WHERE s.namespace = ns AND s.state <> 'live' FOR UPDATE;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'gone', found - kept);
END
//
DROP PROCEDURE IF EXISTS tenure_claim
//
CREATE PROCEDURE tenure_claim(ns {text}, kept BIGINT, sess {text}, elec {text}, att BIGINT, prio INT,
    over_session {text}, over_sequence BIGINT, tell_only TINYINT, above BIGINT, since BIGINT) MODIFIES SQL DATA
claiming: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE found INT;
    DECLARE me, holder, previous, first_session, first_node {text};
    DECLARE own_attempt, first_attempt, e_term, e_floor, e_ended, e_events, settled, granted BIGINT;
    DECLARE first_priority INT;
    DECLARE e_stood, held, told TINYINT DEFAULT 0;
    DECLARE loss JSON;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    -- Looked at without a lock, only so that nothing is made for a session that is over, or for a claim that was
    -- overtaken.
    SELECT COUNT(*) INTO found FROM tenure_sessions s
        WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' AND s.attempt <= att;
    IF found = 1 THEN
        SELECT COUNT(*) INTO found FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
        IF found = 0 THEN
            INSERT INTO tenure_elections (namespace, election, created_at) VALUES (ns, elec, UTC_TIMESTAMP(6))
                ON DUPLICATE KEY UPDATE election = elec;
        END IF;
    END IF;
    SELECT e.ended, e.events, e.session INTO e_ended, settled, holder FROM tenure_elections e
        WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.id = holder AND s.state = 'live' AND NOT (s.id <=> over_session);
    IF found = 0 AND NOT tell_only THEN
        CALL tenure_next(ns, elec, sess, NULL, first_session, first_node, first_attempt, first_priority);
        IF first_priority <= prio OR first_session <=> over_session THEN
            SET first_session = NULL;
        END IF;
    END IF;
    SELECT COUNT(*) INTO found FROM tenure_sessions WHERE id IN (sess, over_session, first_session) FOR UPDATE;
    SELECT s.node, s.attempt INTO me, own_attempt FROM tenure_sessions s
        WHERE s.id = sess AND s.namespace = ns AND s.state = 'live';
    IF me IS NULL THEN
        ROLLBACK;
        SELECT '{"lost": true}';
        LEAVE claiming;
    END IF;
    IF settled IS NULL AND att >= own_attempt THEN
        SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'the session was opened this moment';
    END IF;
    IF att < own_attempt OR e_ended > since THEN
        ROLLBACK;
        SELECT JSON_OBJECT('store', store, 'seen', JSON_EXTRACT(COALESCE(
            (SELECT r.record FROM tenure_records r WHERE r.namespace = ns AND r.election = elec),
            '{"term": 0, "ended": 0, "asked": 0}'), '$'));
        LEAVE claiming;
    END IF;

    IF tell_only THEN
        UPDATE tenure_elections SET floor = above WHERE namespace = ns AND election = elec AND floor < above;
        COMMIT;
        SELECT JSON_OBJECT('store', store, 'seen', JSON_EXTRACT(r.record, '$'))
            FROM tenure_records r WHERE r.namespace = ns AND r.election = elec;
        LEAVE claiming;
    END IF;

    -- Only the holder of this very election: to retire anybody else is not this claim's business.
    IF holder <=> over_session AND over_session <> sess AND EXISTS (SELECT 1 FROM tenure_sessions s
        WHERE s.id = over_session AND s.sequence = over_sequence AND s.state = 'live')
    THEN
        CALL tenure_end_session(over_session, 'lapsed', NULL, kept);
    END IF;
    SELECT e.term, GREATEST(e.floor, above), e.events, e.stood, e.session, e.leader
        INTO e_term, e_floor, e_events, e_stood, holder, previous
        FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    SELECT COUNT(*) INTO held FROM tenure_sessions s WHERE s.id = holder AND s.state = 'live';

    IF held AND holder = sess THEN
        -- A resignation that was sent before this claim, but arrives after it, is void.
        UPDATE tenure_elections SET attempt = GREATEST(attempt, att), floor = e_floor
            WHERE namespace = ns AND election = elec AND session = sess AND (attempt < att OR floor < e_floor);
        COMMIT;
        SELECT JSON_OBJECT('store', store, 'granted', e_term + 0);
        LEAVE claiming;
    END IF;
    IF NOT e_stood THEN
        SET e_stood = 1, told = 1, e_events = e_events + 1;
        CALL tenure_tell(ns, elec, e_events, 'election_started', me, GREATEST(e_term, e_floor), '{}');
    END IF;
    IF held THEN
        UPDATE tenure_elections SET floor = e_floor, stood = e_stood, events = e_events
            WHERE namespace = ns AND election = elec AND (floor < e_floor OR stood < e_stood OR events < e_events);
        IF told THEN CALL tenure_trim_history(ns, elec, e_events, settled, kept); END IF;
    ELSE
        IF holder IS NOT NULL THEN
            -- Its session was ended while this election was locked, or by hand, so nobody has told of its loss yet.
            CALL tenure_loss(holder, loss);
            SET e_events = e_events + 1;
            CALL tenure_tell(ns, elec, e_events, 'leader_lost', previous, e_term, loss);
        END IF;
        SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.id = first_session AND s.state = 'live';
        IF found = 0 THEN
            CALL tenure_grant(ns, elec, e_term, e_floor, e_events, settled, holder, previous, sess, me, att, kept, granted);
            COMMIT;
            SELECT JSON_OBJECT('store', store, 'granted', granted + 0);
            CALL tenure_ring(ns);
            LEAVE claiming;
        END IF;
        CALL tenure_grant(ns, elec, e_term, e_floor, e_events, settled, holder, previous, first_session, first_node,
            first_attempt, kept, granted);
        SET told = 1;
    END IF;
    -- Whoever asks again writes nothing, and keeps its place.
    IF NOT EXISTS (SELECT 1 FROM tenure_candidates c WHERE c.namespace = ns AND c.election = elec
        AND c.session = sess AND c.priority = prio)
    THEN
        INSERT INTO tenure_candidates (namespace, election, session, priority, attempt, since)
            VALUES (ns, elec, sess, prio, att, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE priority = prio, attempt = GREATEST(attempt, att);
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'seen', JSON_EXTRACT(r.record, '$'))
        FROM tenure_records r WHERE r.namespace = ns AND r.election = elec;
    IF told THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_rehearse
//
-- The server reads and parses a procedure when a connection first calls it. So whoever waits calls those of a take-over
-- and of a hand-over on its connection beforehand, in the name of a session that there is not: nothing of it is kept,
-- nothing waits for the disk, and nobody hears of it.
CREATE PROCEDURE tenure_rehearse() MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE stage {text} DEFAULT CONCAT('rehearsal ', CONNECTION_ID());
    DECLARE next_session, next_node {text};
    DECLARE next_attempt, granted BIGINT;
    DECLARE next_priority INT;
    DECLARE loss JSON;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_look(stage, stage, NULL);
    CALL tenure_claim(stage, 1, stage, stage, 1, 0, NULL, NULL, 0, 0, NULL);
    CALL tenure_resign(stage, 1, stage, stage, 1, NULL, NULL, '{}');
    CALL tenure_begin(store);
    CALL tenure_end_session(stage, 'lapsed', NULL, 1);
    CALL tenure_loss(stage, loss);
    CALL tenure_tell_of_node(stage, 'node_expired', stage, '{}', 1);
    CALL tenure_next(stage, stage, stage, stage, next_session, next_node, next_attempt, next_priority);
    BEGIN
        -- There is nothing to grant.
        DECLARE CONTINUE HANDLER FOR SQLSTATE '40001' BEGIN END;
        CALL tenure_grant(stage, stage, 0, 0, 0, 0, NULL, NULL, stage, stage, 1, 1, granted);
    END;
    ROLLBACK;
    CALL tenure_ring(stage);
END
//
DROP PROCEDURE IF EXISTS tenure_resign
//
-- Under a session that is over there is nothing left to give up, so that is no error.
CREATE PROCEDURE tenure_resign(ns {text}, kept BIGINT, sess {text}, elec {text}, att BIGINT, only_term BIGINT,
    successor {text}, cause TEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA
resigning: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE me, holder, previous, next_session, next_node {text};
    DECLARE found INT;
    DECLARE next_attempt, e_floor, granted, e_term, e_attempt, e_events, e_asked, settled BIGINT;
    DECLARE next_priority INT;
    DECLARE asked TINYINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT e.session, e.term, e.floor, e.attempt, e.events, e.asked, e.leader
        INTO holder, e_term, e_floor, e_attempt, e_events, e_asked, previous
        FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    IF holder = sess THEN
        CALL tenure_next(ns, elec, sess, successor, next_session, next_node, next_attempt, next_priority);
    END IF;
    SELECT COUNT(*) INTO found FROM tenure_sessions WHERE id IN (sess, next_session) FOR UPDATE;
    SELECT s.node INTO me FROM tenure_sessions s WHERE s.id = sess AND s.namespace = ns AND s.state = 'live';
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.id = next_session AND s.state = 'live';
    IF found = 0 THEN SET next_session = NULL, next_node = NULL; END IF;
    IF me IS NULL THEN
        ROLLBACK;
        SELECT JSON_OBJECT('store', store);
        LEAVE resigning;
    END IF;
    UPDATE tenure_sessions SET attempt = att WHERE id = sess AND attempt < att;
    DELETE FROM tenure_candidates WHERE namespace = ns AND election = elec AND session = sess AND attempt <= att;
    -- A resignation that arrives late must not undo a claim that was sent after it: its node may have been
    -- told since that it leads.
    IF NOT (holder <=> sess) OR e_attempt > att OR only_term <> e_term THEN
        COMMIT;
        SELECT JSON_OBJECT('store', store);
        LEAVE resigning;
    END IF;
    SET settled = e_events, asked = e_asked = e_term;
    IF next_node IS NOT NULL AND (asked OR next_node = successor) THEN
        SET cause = JSON_SET(cause, '$.to', next_node);
        IF NOT asked THEN
            SET e_events = e_events + 1;
            CALL tenure_tell(ns, elec, e_events, 'transfer_requested', me, e_term, JSON_OBJECT('to', next_node));
        END IF;
    END IF;
    SET e_events = e_events + 1;
    CALL tenure_tell(ns, elec, e_events, IF(JSON_CONTAINS_PATH(cause, 'one', '$.reason'), 'leader_lost', 'leader_resigned'),
        me, e_term, cause);
    IF next_session IS NOT NULL THEN
        CALL tenure_grant(ns, elec, e_term, e_floor, e_events, settled, sess, previous, next_session, next_node,
            next_attempt, kept, granted);
    ELSE
        UPDATE tenure_elections SET session = NULL, events = e_events
            WHERE namespace = ns AND election = elec AND session = sess AND term = e_term;
        CALL tenure_trim_history(ns, elec, e_events, settled, kept);
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store);
    CALL tenure_ring(ns);
END
//
DROP PROCEDURE IF EXISTS tenure_end_election
//
-- The end consumes a term number, so that whoever compares terms sees that it came after everything before.
-- A holder keeps its lease: only itself or its silence can free it.
CREATE PROCEDURE tenure_end_election(ns {text}, kept BIGINT, elec {text}, forced TINYINT) MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE holder {text};
    DECLARE next_floor, settled BIGINT;
    DECLARE e_stood, led TINYINT DEFAULT 0;
    DECLARE deletion {text} DEFAULT 'ended';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    CALL tenure_lock_election(ns, elec, holder);
    SELECT e.stood, e.events INTO e_stood, settled FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    SET led = EXISTS (SELECT 1 FROM tenure_sessions s WHERE s.id = holder AND s.state = 'live');
    IF NOT e_stood THEN
        SET deletion = 'absent';
    ELSEIF led AND NOT forced THEN
        SET deletion = 'led';
    ELSE
        SELECT GREATEST(e.term, e.floor) + 1 INTO next_floor FROM tenure_elections e
            WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
        CALL tenure_tell(ns, elec, settled + 1, 'election_deleted', NULL, next_floor, '{}');
        UPDATE tenure_elections SET floor = next_floor, ended = next_floor, stood = 0, events = settled + 1
            WHERE namespace = ns AND election = elec;
        UPDATE tenure_sessions SET notices = notices + 1 WHERE id = holder AND led;
        DELETE FROM tenure_candidates WHERE namespace = ns AND election = elec;
        CALL tenure_trim_history(ns, elec, settled + 1, settled, kept);
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'deletion', deletion);
    IF deletion = 'ended' THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_petition
//
-- The leader is asked to give its term up. Only it can: it knows when its work has stopped.
CREATE PROCEDURE tenure_petition(ns {text}, kept BIGINT, elec {text}, successor {text}) MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE holder, leader, e_asked_for {text};
    DECLARE e_term, e_asked, settled BIGINT;
    DECLARE told, stands TINYINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    CALL tenure_lock_election(ns, elec, holder);
    SELECT s.node INTO leader FROM tenure_sessions s WHERE s.id = holder AND s.state = 'live';
    SELECT COUNT(*) INTO stands FROM tenure_standing c WHERE c.namespace = ns AND c.election = elec AND c.node = successor;
    IF leader IS NULL THEN
        COMMIT;
        SELECT JSON_OBJECT('store', store, 'petition', 'nobody_leads');
    ELSEIF successor IS NOT NULL AND stands = 0 THEN
        COMMIT;
        SELECT JSON_OBJECT('store', store, 'petition', 'not_standing');
    ELSE
        SELECT e.term, e.asked, e.asked_for, e.events INTO e_term, e_asked, e_asked_for, settled FROM tenure_elections e
            WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
        IF e_asked <> e_term OR NOT (e_asked_for <=> successor) THEN
            CALL tenure_tell(ns, elec, settled + 1, 'transfer_requested', leader, e_term,
                IF(successor IS NULL, '{}', JSON_OBJECT('to', successor)));
            UPDATE tenure_elections SET asked = e_term, asked_for = successor, events = settled + 1
                WHERE namespace = ns AND election = elec;
            UPDATE tenure_sessions SET notices = notices + 1 WHERE id = holder;
            CALL tenure_trim_history(ns, elec, settled + 1, settled, kept);
            SET told = 1;
        END IF;
        COMMIT;
        SELECT JSON_OBJECT('store', store, 'petition', 'noted', 'leader', leader, 'term', e_term + 0);
        IF told = 1 THEN CALL tenure_ring(ns); END IF;
    END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_declare_degraded
//
-- What a leader says of the whole cluster: told once.
CREATE PROCEDURE tenure_declare_degraded(ns {text}, kept BIGINT, sess {text}, elec {text}, trm BIGINT, bad TINYINT,
    living BIGINT, least_living BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE me {text};
    DECLARE settled BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT e.events INTO settled FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec
        AND e.session = sess AND e.term = trm AND e.degraded <> bad FOR UPDATE;
    SELECT s.node INTO me FROM tenure_sessions s WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' FOR UPDATE;
    IF me IS NULL THEN SET settled = NULL; END IF;
    IF settled IS NOT NULL THEN
        CALL tenure_tell(ns, elec, settled + 1, IF(bad, 'cluster_degraded', 'cluster_recovered'), me, trm,
            JSON_OBJECT('live', living + 0, 'minimum', least_living + 0));
        UPDATE tenure_elections SET degraded = bad, events = settled + 1
            WHERE namespace = ns AND election = elec AND session = sess AND term = trm;
        CALL tenure_trim_history(ns, elec, settled + 1, settled, kept);
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'done', settled IS NOT NULL);
    IF settled IS NOT NULL THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_report_health
//
-- What a node reports of its own health: told when it changes. It needs the row of its session, and no election.
CREATE PROCEDURE tenure_report_health(ns {text}, kept BIGINT, sess {text}, report BIGINT,
    wrong VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin) MODIFIES SQL DATA
reporting: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE me {text};
    DECLARE last BIGINT;
    DECLARE unhealthy, changes TINYINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT s.node, s.health_report, s.problem IS NOT NULL INTO me, last, unhealthy FROM tenure_sessions s
        WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' FOR UPDATE;
    IF me IS NULL THEN
        ROLLBACK;
        SELECT '{"lost": true}';
        LEAVE reporting;
    END IF;
    IF report >= last THEN
        SET changes = unhealthy <> (wrong IS NOT NULL);
        UPDATE tenure_sessions SET health_report = report, problem = wrong,
            unhealthy_since = IF(wrong IS NULL, NULL, COALESCE(unhealthy_since, UTC_TIMESTAMP(6))) WHERE id = sess;
        IF changes THEN
            CALL tenure_tell_of_node(ns, IF(wrong IS NULL, 'node_healthy', 'node_unhealthy'), me,
                IF(wrong IS NULL, '{}', JSON_OBJECT('problem', wrong)), kept);
        END IF;
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'done', changes + 0);
    IF changes THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_hold
//
-- Inside of a transaction of the application: locks the lease for the rest of it, if it is held. A client that is
-- stopped between two statements must not keep a successor waiting for ever: if none comes for as long as a lease
-- lasts, the server ends the connection.
CREATE PROCEDURE tenure_hold(ns {text}, elec {text}, sess {text}, trm BIGINT) READS SQL DATA
BEGIN
    DECLARE found INT;
    DECLARE seconds, idle_seconds BIGINT;
    SELECT COUNT(*) INTO found FROM tenure_elections e
        WHERE e.namespace = ns AND e.election = elec AND e.session = sess AND e.term = trm LOCK IN SHARE MODE;
    SELECT CEIL(s.ttl_ms / 1000) INTO seconds FROM tenure_sessions s WHERE s.id = sess AND s.state = 'live';
    -- In a variable of its own: MySQL refuses the expression itself, as its type is no integer.
    SET idle_seconds = GREATEST(1, LEAST(COALESCE(seconds, 1), COALESCE(NULLIF(@@GLOBAL.{idle}, 0), 31536000), 31536000));
    SET SESSION {idle} = idle_seconds;
    SELECT found = 1 AND seconds IS NOT NULL AND NOT @@GLOBAL.read_only;
END
