-- Parts of the verbs: how a transaction begins, how history is written, how sleepers are woken, how a session ends.

DROP PROCEDURE IF EXISTS tenure_begin
//
-- Begins, and says which store this is: the history, and the server that tells it.
CREATE PROCEDURE tenure_begin(OUT store TEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA
BEGIN
    -- Whatever a call that was interrupted has left behind is undone.
    ROLLBACK;
    -- Also for a definer who may write nevertheless: what a replica is told is lost.
    IF @@GLOBAL.read_only THEN
        SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server is read-only';
    END IF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    SELECT CONCAT(m.store, ' ', {server}) INTO store FROM tenure_meta m;
END
//
DROP PROCEDURE IF EXISTS tenure_remember
//
-- Makes room for so many lines of history, and says the id of the last of them.
CREATE PROCEDURE tenure_remember(ns {text}, added BIGINT, OUT last BIGINT) MODIFIES SQL DATA
BEGIN
    INSERT INTO tenure_histories (namespace, events) VALUES (ns, added)
        ON DUPLICATE KEY UPDATE events = events + added;
    SELECT h.events INTO last FROM tenure_histories h WHERE h.namespace = ns FOR UPDATE;
END
//
DROP PROCEDURE IF EXISTS tenure_tell
//
-- A line of history, in the transaction of what it tells.
CREATE PROCEDURE tenure_tell(ns {text}, elec {text}, seq BIGINT, what {text}, who {text}, trm BIGINT, more JSON)
MODIFIES SQL DATA
BEGIN
    DECLARE last BIGINT;
    CALL tenure_remember(ns, 1, last);
    INSERT INTO tenure_events (namespace, id, election, sequence, time, kind, node, term, data)
        VALUES (ns, last, elec, seq, UTC_TIMESTAMP(6), what, who, trm, more);
END
//
DROP PROCEDURE IF EXISTS tenure_tell_of_node
//
CREATE PROCEDURE tenure_tell_of_node(ns {text}, what {text}, who {text}, more JSON, kept BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE oldest BIGINT;
    CALL tenure_tell(ns, NULL, 0, what, who, 0, more);
    SELECT MAX(o.id) INTO oldest FROM (
        SELECT v.id FROM tenure_events v WHERE v.namespace = ns AND v.election IS NULL
        ORDER BY v.id DESC LIMIT 1 OFFSET kept) o;
    IF oldest IS NOT NULL THEN
        DELETE FROM tenure_events WHERE namespace = ns AND election IS NULL AND id <= oldest;
    END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_trim_history
//
-- Drops what is beyond retention, but nothing after `settled`: the transition under way is kept whole.
CREATE PROCEDURE tenure_trim_history(ns {text}, elec {text}, last BIGINT, settled BIGINT, kept BIGINT)
MODIFIES SQL DATA
    DELETE FROM tenure_events
        WHERE namespace = ns AND election = elec AND sequence <= LEAST(settled, last - kept)
//
DROP PROCEDURE IF EXISTS tenure_ring
//
-- Wakes up whoever sleeps until something happens. It is called after the commit, and whatever fails in it
-- changes nothing: then sleepers look when they would have looked anyway.
CREATE PROCEDURE tenure_ring(ns {text}) MODIFIES SQL DATA
BEGIN
    DECLARE sleeper BIGINT UNSIGNED;
    DECLARE done TINYINT DEFAULT 0;
    DECLARE sleepers CURSOR FOR SELECT connection FROM tenure_listeners WHERE namespace = ns;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END;
    OPEN sleepers;
    FETCH sleepers INTO sleeper;
    WHILE done = 0 DO
        BEGIN
            -- Whoever is gone this moment needs no waking.
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
            -- A number may be somebody else's since the server was started again. The lock is the sleeper's own.
            IF IS_USED_LOCK(CONCAT('tenure listener ', sleeper)) <=> sleeper THEN
                KILL QUERY sleeper;
            ELSE
                DELETE FROM tenure_listeners WHERE connection = sleeper;
            END IF;
        END;
        FETCH sleepers INTO sleeper;
    END WHILE;
    CLOSE sleepers;
END
//
DROP PROCEDURE IF EXISTS tenure_loss
//
-- Why an election has lost its holder, whose session is over. One that has left was superseded by another session of
-- its own process; if its ttl was over before that, it had lapsed.
CREATE PROCEDURE tenure_loss(sess {text}, OUT loss JSON) READS SQL DATA
BEGIN
    DECLARE silent, ttl BIGINT;
    DECLARE reopened TINYINT;
    SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, s.renewed_at, UTC_TIMESTAMP(6)) DIV 1000), s.ttl_ms, s.state = 'left'
        INTO silent, ttl, reopened FROM tenure_sessions s WHERE s.id = sess;
    SET loss = JSON_OBJECT('reason', IF(reopened AND silent < ttl, 'superseded', 'lapsed'),
        'silent_ms', silent + 0, 'ttl_ms', ttl + 0);
    IF reopened THEN SET loss = JSON_MERGE_PATCH(loss, '{"reopened": true}'); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_grant
//
-- Grants the next term of an election, which is locked, to a candidate whose session is locked. `e_events` counts what
-- was told before.
CREATE PROCEDURE tenure_grant(ns {text}, elec {text}, e_term BIGINT, e_floor BIGINT, e_events BIGINT, settled BIGINT,
    holder {text}, previous {text}, sess {text}, who {text}, att BIGINT, kept BIGINT, OUT granted BIGINT)
MODIFIES SQL DATA
BEGIN
    DECLARE found INT;
    SET granted = GREATEST(e_term, e_floor) + 1;
    SET e_events = e_events + 1;
    CALL tenure_tell(ns, elec, e_events, 'leader_elected', who, granted, '{}');
    IF previous <> who THEN
        SET e_events = e_events + 1;
        CALL tenure_tell(ns, elec, e_events, 'leader_changed', who, granted,
            JSON_OBJECT('previous', previous, 'new', who));
    END IF;
    -- What decides: the row as it was seen gets another holder under the next term, or nothing happens.
    UPDATE tenure_elections SET term = granted, floor = e_floor, session = sess, attempt = att, leader = who,
        stood = 1, events = e_events, acquired_at = UTC_TIMESTAMP(6)
        WHERE namespace = ns AND election = elec AND term = e_term AND session <=> holder;
    SELECT COUNT(*) INTO found FROM tenure_elections e
        WHERE e.namespace = ns AND e.election = elec AND e.session = sess AND e.term = granted AND e.attempt = att FOR UPDATE;
    IF found <> 1 THEN
        SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'the lease has changed meanwhile';
    END IF;
    UPDATE tenure_sessions SET grants = grants + 1 WHERE id = sess;
    DELETE FROM tenure_candidates WHERE namespace = ns AND election = elec AND session = sess;
    CALL tenure_trim_history(ns, elec, e_events, settled, kept);
END
//
DROP PROCEDURE IF EXISTS tenure_next
//
-- To whom a lease goes that is given up, or free: to the named candidate, or to the first by priority and arrival that was
-- renewed lately, but not to `sess`. Our clock decides nothing but who is asked first. Nothing is locked.
CREATE PROCEDURE tenure_next(ns {text}, elec {text}, sess {text}, named {text},
    OUT next_session {text}, OUT next_node {text}, OUT next_attempt BIGINT, OUT next_priority INT) READS SQL DATA
BEGIN
    SET next_session = NULL, next_node = NULL, next_attempt = NULL, next_priority = NULL;
    SELECT c.session, s.node, c.attempt, c.priority INTO next_session, next_node, next_attempt, next_priority
        FROM tenure_candidates c JOIN tenure_sessions s ON s.id = c.session AND s.state = 'live'
        WHERE c.namespace = ns AND c.election = elec AND c.session <> sess
        AND s.renewed_at + INTERVAL s.ttl_ms * IF(s.node <=> named, 1000, 500) MICROSECOND >= UTC_TIMESTAMP(6)
        ORDER BY s.node <=> named DESC, c.priority DESC, c.arrival LIMIT 1;
END
//
DROP PROCEDURE IF EXISTS tenure_pass_on
//
-- Passes on what a session that is closed has led. Whoever is busy this moment is not waited for: it may wait for us.
CREATE PROCEDURE tenure_pass_on(ns {text}, elec {text}, sess {text}, who {text}, more JSON, kept BIGINT)
MODIFIES SQL DATA
passing: BEGIN
    DECLARE next_session, next_node, previous {text};
    DECLARE next_attempt, e_term, e_floor, e_events, granted BIGINT;
    DECLARE found, next_priority INT;
    CALL tenure_next(ns, elec, sess, NULL, next_session, next_node, next_attempt, next_priority);
    SELECT e.term, e.floor, e.events, e.leader INTO e_term, e_floor, e_events, previous FROM tenure_elections e
        WHERE e.namespace = ns AND e.election = elec AND e.session = sess FOR UPDATE SKIP LOCKED;
    SELECT COUNT(*) INTO found FROM tenure_sessions s WHERE s.id = next_session AND s.state = 'live'
        FOR UPDATE SKIP LOCKED;
    IF e_term IS NULL OR found = 0 THEN LEAVE passing; END IF;
    CALL tenure_tell(ns, elec, e_events + 1, IF(JSON_CONTAINS_PATH(more, 'one', '$.reason'), 'leader_lost', 'leader_resigned'), who, e_term, more);
    CALL tenure_grant(ns, elec, e_term, e_floor, e_events + 1, e_events, sess, previous, next_session, next_node,
        next_attempt, kept, granted);
END
//
DROP PROCEDURE IF EXISTS tenure_end_session
//
-- Ends a live session, which is locked, and everything that hangs from it: a few statements however much
-- that is. An election that somebody else has locked is passed over: whoever is granted it next finds that its holder's
-- session is over, and tells of the loss.
CREATE PROCEDURE tenure_end_session(sess {text}, ending {text}, cause JSON, kept BIGINT) MODIFIES SQL DATA
dying: BEGIN
    DECLARE ns, who {text};
    DECLARE freed, last BIGINT;
    DECLARE more JSON DEFAULT cause;
    DECLARE locked, awaited MEDIUMTEXT CHARACTER SET utf8mb4;
    DECLARE number INT DEFAULT 0;
    SELECT s.namespace, s.node INTO ns, who FROM tenure_sessions s WHERE s.id = sess AND s.state = 'live' FOR UPDATE;
    IF who IS NULL THEN LEAVE dying; END IF;
    UPDATE tenure_sessions SET state = IF(ending = 'lapsed', 'expired', 'left') WHERE id = sess;
    IF ending <> 'closed' THEN CALL tenure_loss(sess, more); END IF;
    DELETE FROM tenure_candidates WHERE session = sess;
    -- What is closed is passed on, but not more than so much at once.
    IF ending = 'closed' THEN
        SELECT JSON_ARRAYAGG(o.election) INTO awaited FROM (
            SELECT e.election FROM tenure_elections e WHERE e.session = sess AND EXISTS (
                SELECT 1 FROM tenure_candidates c WHERE c.namespace = e.namespace AND c.election = e.election)
            ORDER BY e.election LIMIT 250) o;
        WHILE number < COALESCE(JSON_LENGTH(awaited), 0) DO
            CALL tenure_pass_on(ns, JSON_UNQUOTE(JSON_EXTRACT(awaited, CONCAT('$[', number, ']'))), sess, who, more, kept);
            SET number = number + 1;
        END WHILE;
    END IF;
    -- By their names from here on, and by the primary key: any other way to them would wait for those that are locked.
    SELECT COUNT(*), JSON_ARRAYAGG(e.election) INTO freed, locked FROM tenure_elections e WHERE e.session = sess
        FOR UPDATE SKIP LOCKED;
    IF freed > 0 THEN
        CALL tenure_remember(ns, freed, last);
        INSERT INTO tenure_events (namespace, id, election, sequence, time, kind, node, term, data)
            SELECT e.namespace, last - freed + ROW_NUMBER() OVER (ORDER BY e.election), e.election, e.events + 1,
                   UTC_TIMESTAMP(6), IF(JSON_CONTAINS_PATH(more, 'one', '$.reason'), 'leader_lost', 'leader_resigned'), who, e.term, more
            FROM JSON_TABLE(locked, '$[*]' COLUMNS (election VARCHAR(128) PATH '$')) t
            STRAIGHT_JOIN tenure_elections e FORCE INDEX (PRIMARY)
                ON e.namespace = ns AND e.election = CONVERT(t.election USING utf8mb4) COLLATE utf8mb4_bin;
        DELETE v FROM JSON_TABLE(locked, '$[*]' COLUMNS (election VARCHAR(128) PATH '$')) t
            STRAIGHT_JOIN tenure_elections e FORCE INDEX (PRIMARY)
                ON e.namespace = ns AND e.election = CONVERT(t.election USING utf8mb4) COLLATE utf8mb4_bin
            STRAIGHT_JOIN tenure_events v
                ON v.namespace = e.namespace AND v.election = e.election AND v.sequence <= e.events + 1 - kept;
        UPDATE JSON_TABLE(locked, '$[*]' COLUMNS (election VARCHAR(128) PATH '$')) t
            STRAIGHT_JOIN tenure_elections e FORCE INDEX (PRIMARY)
                ON e.namespace = ns AND e.election = CONVERT(t.election USING utf8mb4) COLLATE utf8mb4_bin
            SET e.session = NULL, e.events = e.events + 1;
    END IF;
    CALL tenure_tell_of_node(ns, IF(ending = 'lapsed', 'node_expired', 'node_left'), who,
        IF(ending = 'lapsed', '{}', more), kept);
END
//
DROP PROCEDURE IF EXISTS tenure_lock_election
//
-- Locks the election, and then its holder's session.
CREATE PROCEDURE tenure_lock_election(ns {text}, elec {text}, OUT holder {text}) MODIFIES SQL DATA
BEGIN
    DECLARE found INT;
    SET holder = NULL;
    SELECT e.session INTO holder FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    SELECT COUNT(*) INTO found FROM tenure_sessions WHERE id = holder FOR UPDATE;
END
