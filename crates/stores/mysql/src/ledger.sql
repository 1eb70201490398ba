-- Who owns which partition. A ledger belongs to an election, whose leader writes it.
--
-- Locks are taken in the order of the other verbs: the election, its ledger, sessions, the history. Entries are
-- written under the lock of their ledger only.

CREATE TABLE IF NOT EXISTS tenure_ledgers (
    namespace {text} NOT NULL,
    election  {text} NOT NULL,
    revision  BIGINT NOT NULL DEFAULT 0,           -- rises with every change
    published BIGINT NOT NULL DEFAULT 0,           -- the revision of the coordinator's last word
    PRIMARY KEY (namespace, election)
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_task_lists (
    namespace {text} NOT NULL,
    election  {text} NOT NULL,
    number    INT    NOT NULL,                     -- what partitions call it
    name      {text} NOT NULL,
    revision  BIGINT NOT NULL,
    document  MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,  -- NULL: it was dropped
    PRIMARY KEY (namespace, election, number),
    UNIQUE KEY once (namespace, election, name)
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_workers (
    namespace {text} NOT NULL,
    election  {text} NOT NULL,
    session   {text} NOT NULL,                     -- which may be over, and forgotten
    node      {text} NOT NULL,
    document  MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (namespace, election, session)
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_partitions (
    namespace {text}  NOT NULL,
    election  {text}  NOT NULL,
    list      BIGINT  NOT NULL,
    number    BIGINT  NOT NULL,
    revision  BIGINT  NOT NULL,                    -- when it last changed
    owner     {text},                              -- the session that owns it, as long as that is live
    revoking  TINYINT NOT NULL,                    -- whether its owner was asked to give it up
    PRIMARY KEY (namespace, election, list, number),
    KEY changed (namespace, election, revision),
    KEY owned (namespace, election, owner, revision)
) ENGINE = InnoDB
//
CREATE OR REPLACE VIEW tenure_owners AS SELECT
    p.election,
    l.name AS task_list,
    p.number,
    s.node,
    CASE WHEN s.id IS NULL THEN 'vacant' WHEN p.revoking = 1 THEN 'revoking' ELSE 'owned' END AS state,
    p.revision,
    p.namespace
FROM tenure_partitions p
LEFT JOIN tenure_task_lists l ON l.namespace = p.namespace AND l.election = p.election AND l.number = p.list
LEFT JOIN tenure_sessions s ON s.id = p.owner AND s.state = 'live'
//
DROP PROCEDURE IF EXISTS tenure_lock_ledger
//
CREATE PROCEDURE tenure_lock_ledger(ns {text}, elec {text}, OUT at BIGINT, OUT last BIGINT) MODIFIES SQL DATA
BEGIN
    SET at = NULL, last = NULL;
    SELECT l.revision, l.published INTO at, last FROM tenure_ledgers l
        WHERE l.namespace = ns AND l.election = elec FOR UPDATE;
    IF at IS NULL THEN
        INSERT INTO tenure_ledgers (namespace, election) VALUES (ns, elec)
            ON DUPLICATE KEY UPDATE revision = revision;
        SELECT l.revision, l.published INTO at, last FROM tenure_ledgers l
            WHERE l.namespace = ns AND l.election = elec FOR UPDATE;
    END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_tell_of_ledger
//
-- A line in the history of its election, which is locked.
-- `told` counts the lines of the transition under way, which is kept whole.
CREATE PROCEDURE tenure_tell_of_ledger(ns {text}, elec {text}, what {text}, who {text}, more JSON, kept BIGINT,
    INOUT told BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE e_term, last BIGINT;
    SELECT e.term, e.events + 1 INTO e_term, last FROM tenure_elections e
        WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    SET told = told + 1;
    CALL tenure_tell(ns, elec, last, what, who, e_term, more);
    UPDATE tenure_elections SET events = last WHERE namespace = ns AND election = elec;
    CALL tenure_trim_history(ns, elec, last, last - told, kept);
END
//
DROP PROCEDURE IF EXISTS tenure_shares
//
-- The partitions that were written with this revision, by node and task list, in their order: that of JSON_ARRAYAGG
-- is whatever the server's plan brings, and MySQL's cannot be told another.
CREATE PROCEDURE tenure_shares(ns {text}, elec {text}, at BIGINT, taken TINYINT,
    OUT shares MEDIUMTEXT CHARACTER SET utf8mb4) READS SQL DATA
BEGIN
    SELECT JSON_OBJECTAGG(n.node, JSON_EXTRACT(n.lists, '$')) INTO shares FROM (
        SELECT l.node, JSON_OBJECTAGG(l.name, JSON_EXTRACT(l.numbers, '$')) AS lists FROM (
            SELECT k.node, COALESCE(t.name, p.list) AS name,
                CONCAT('[', GROUP_CONCAT(p.number ORDER BY p.number), ']') AS numbers
            FROM tenure_partitions p
            JOIN tenure_workers k ON k.namespace = ns AND k.election = elec AND k.session = p.owner
            LEFT JOIN tenure_task_lists t ON t.namespace = ns AND t.election = elec AND t.number = p.list
            WHERE p.namespace = ns AND p.election = elec AND p.revision = at AND p.revoking = taken
            GROUP BY k.node, COALESCE(t.name, p.list)) l
        GROUP BY l.node) n;
END
//
DROP PROCEDURE IF EXISTS tenure_publish
//
-- `silent` is a list of [session, sequence]; `words` one of [list, number, seen, to], without `to`: to be revoked.
CREATE PROCEDURE tenure_publish(ns {text}, kept BIGINT, sess {text}, elec {text}, trm BIGINT, after BIGINT,
    silent MEDIUMTEXT CHARACTER SET utf8mb4, words MEDIUMTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA
publishing: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE found INT;
    DECLARE me, dead {text};
    DECLARE held, at, last, assigned, revoked BIGINT;
    DECLARE told BIGINT DEFAULT 0;
    DECLARE refused, freed, given MEDIUMTEXT CHARACTER SET utf8mb4;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT e.term INTO held FROM tenure_elections e
        WHERE e.namespace = ns AND e.election = elec AND e.session = sess AND e.term = trm FOR UPDATE;
    IF held IS NOT NULL THEN CALL tenure_lock_ledger(ns, elec, at, last); END IF;
    SELECT COUNT(*) INTO found FROM (
        SELECT sess AS id
        UNION SELECT CONVERT(t.id USING utf8mb4) COLLATE utf8mb4_bin
            FROM JSON_TABLE(silent, '$[*]' COLUMNS (id VARCHAR(128) PATH '$[0]')) t
        UNION SELECT CONVERT(w.new_owner USING utf8mb4) COLLATE utf8mb4_bin
            FROM JSON_TABLE(words, '$[*]' COLUMNS (new_owner VARCHAR(128) PATH '$[3]')) w WHERE w.new_owner IS NOT NULL
        UNION SELECT p.owner FROM JSON_TABLE(words, '$[*]' COLUMNS (list BIGINT PATH '$[0]', number BIGINT PATH '$[1]')) w
            JOIN tenure_partitions p
                ON p.namespace = ns AND p.election = elec AND p.list = w.list AND p.number = w.number
            WHERE p.owner IS NOT NULL) i
        STRAIGHT_JOIN tenure_sessions s ON s.id = i.id FOR UPDATE;
    SELECT s.node INTO me FROM tenure_sessions s WHERE s.id = sess AND s.namespace = ns AND s.state = 'live';
    IF me IS NULL THEN
        ROLLBACK;
        SELECT '{"lost": true}';
        LEAVE publishing;
    END IF;
    IF held IS NULL THEN
        ROLLBACK;
        SELECT JSON_OBJECT('store', store, 'published', 'term_over');
        LEAVE publishing;
    END IF;
    IF last <> after THEN
        ROLLBACK;
        SELECT JSON_OBJECT('store', store, 'published', 'overtaken');
        LEAVE publishing;
    END IF;
    BEGIN
        DECLARE done TINYINT DEFAULT 0;
        DECLARE dying CURSOR FOR SELECT s.id
            FROM JSON_TABLE(silent, '$[*]' COLUMNS (id VARCHAR(128) PATH '$[0]', seq BIGINT PATH '$[1]')) t
            JOIN tenure_sessions s ON s.id = CONVERT(t.id USING utf8mb4) COLLATE utf8mb4_bin
                AND s.sequence = t.seq AND s.namespace = ns AND s.state = 'live';
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
        OPEN dying;
        FETCH dying INTO dead;
        WHILE done = 0 DO
            CALL tenure_end_session(dead, 'lapsed', NULL, kept);
            SET done = 0;
            FETCH dying INTO dead;
        END WHILE;
        CLOSE dying;
    END;
    INSERT INTO tenure_partitions (namespace, election, list, number, revision, owner, revoking)
        SELECT ns, elec, w.list, w.number, at + 1, COALESCE(w.new_owner, p.owner), w.new_owner IS NULL
        FROM (SELECT t.list, t.number, t.seen, CONVERT(t.new_owner USING utf8mb4) COLLATE utf8mb4_bin AS new_owner
              FROM JSON_TABLE(words, '$[*]' COLUMNS (list BIGINT PATH '$[0]', number BIGINT PATH '$[1]',
                  seen BIGINT PATH '$[2]', new_owner VARCHAR(128) PATH '$[3]')) t) w
        LEFT JOIN tenure_partitions p
            ON p.namespace = ns AND p.election = elec AND p.list = w.list AND p.number = w.number
        LEFT JOIN tenure_sessions s ON s.id = p.owner AND s.state = 'live'
        WHERE COALESCE(p.revision, 0) = w.seen AND (s.id IS NULL) = (w.new_owner IS NOT NULL)
          AND (w.new_owner IS NULL OR EXISTS (SELECT 1 FROM tenure_workers k
               JOIN tenure_sessions h ON h.id = k.session AND h.state = 'live' AND h.namespace = ns
               WHERE k.namespace = ns AND k.election = elec AND k.session = w.new_owner))
        ON DUPLICATE KEY UPDATE tenure_partitions.revision = VALUES(revision),
            tenure_partitions.owner = VALUES(owner), tenure_partitions.revoking = VALUES(revoking);
    -- What has the next revision now was written; all else of it was refused.
    SELECT COALESCE(SUM(p.revoking = 0), 0), COALESCE(SUM(p.revoking = 1), 0) INTO assigned, revoked
        FROM tenure_partitions p WHERE p.namespace = ns AND p.election = elec AND p.revision = at + 1;
    SELECT JSON_ARRAYAGG(JSON_ARRAY(w.list, w.number)) INTO refused
        FROM JSON_TABLE(words, '$[*]' COLUMNS (list BIGINT PATH '$[0]', number BIGINT PATH '$[1]')) w
        WHERE NOT EXISTS (SELECT 1 FROM tenure_partitions p WHERE p.namespace = ns AND p.election = elec
            AND p.list = w.list AND p.number = w.number AND p.revision = at + 1);
    UPDATE tenure_sessions s JOIN (
        SELECT DISTINCT p.owner FROM tenure_partitions p
        WHERE p.namespace = ns AND p.election = elec AND p.revision = at + 1) o ON o.owner = s.id
        SET s.notices = s.notices + 1;
    CALL tenure_shares(ns, elec, at + 1, 1, freed);
    CALL tenure_shares(ns, elec, at + 1, 0, given);
    -- Workers whose session is over, and whom no entry names any more.
    DELETE FROM tenure_workers WHERE namespace = ns AND election = elec
        AND NOT EXISTS (SELECT 1 FROM tenure_sessions s WHERE s.id = tenure_workers.session AND s.state = 'live')
        AND NOT EXISTS (SELECT 1 FROM tenure_partitions p
                        WHERE p.namespace = ns AND p.election = elec AND p.owner = tenure_workers.session);
    IF assigned + revoked > 0 THEN
        SET at = at + 1;
        UPDATE tenure_ledgers SET revision = at, published = at WHERE namespace = ns AND election = elec;
        CALL tenure_tell_of_ledger(ns, elec, 'plan_published', me,
            JSON_OBJECT('revision', at + 0, 'assigned', assigned + 0, 'revoked', revoked + 0), kept, told);
        IF revoked > 0 THEN
            CALL tenure_tell_of_ledger(ns, elec, 'partition_revoked', me,
                JSON_OBJECT('revision', at + 0, 'from', JSON_EXTRACT(freed, '$')), kept, told);
        END IF;
        IF assigned > 0 THEN
            CALL tenure_tell_of_ledger(ns, elec, 'partition_assigned', me,
                JSON_OBJECT('revision', at + 0, 'to', JSON_EXTRACT(given, '$')), kept, told);
        END IF;
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'published', 'written', 'revision', at + 0,
        'refused', JSON_EXTRACT(COALESCE(refused, '[]'), '$'));
    IF assigned + revoked > 0 OR silent <> '[]' THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_acknowledge
//
-- `words` is a list of [list, number, revision of its revocation].
CREATE PROCEDURE tenure_acknowledge(ns {text}, kept BIGINT, sess {text}, elec {text},
    words MEDIUMTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA
acknowledging: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE me, holder {text};
    DECLARE at, last, released, heard BIGINT;
    DECLARE told BIGINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT e.session INTO holder FROM tenure_elections e WHERE e.namespace = ns AND e.election = elec FOR UPDATE;
    CALL tenure_lock_ledger(ns, elec, at, last);
    SELECT s.node, s.notices INTO me, heard FROM tenure_sessions s
        WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' FOR UPDATE;
    IF me IS NULL THEN
        ROLLBACK;
        SELECT '{"lost": true}';
        LEAVE acknowledging;
    END IF;
    UPDATE tenure_partitions p
        JOIN JSON_TABLE(words, '$[*]' COLUMNS (list BIGINT PATH '$[0]', number BIGINT PATH '$[1]', seen BIGINT PATH '$[2]')) w
            ON p.list = w.list AND p.number = w.number AND p.revision = w.seen
        SET p.revision = at + 1, p.owner = NULL, p.revoking = 0
        WHERE p.namespace = ns AND p.election = elec AND p.owner = sess AND p.revoking = 1;
    SELECT COUNT(*) INTO released FROM tenure_partitions p
        WHERE p.namespace = ns AND p.election = elec AND p.revision = at + 1;
    IF released > 0 THEN
        SET heard = heard + 1;
        UPDATE tenure_ledgers SET revision = at + 1 WHERE namespace = ns AND election = elec;
        UPDATE tenure_sessions SET notices = heard WHERE id = sess;
        CALL tenure_tell_of_ledger(ns, elec, 'partition_released', me,
            JSON_OBJECT('revision', at + 1, 'released', released + 0), kept, told);
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'notices', heard + 0);
    IF released > 0 THEN CALL tenure_ring(ns); END IF;
END
//
DROP PROCEDURE IF EXISTS tenure_enlist
//
CREATE PROCEDURE tenure_enlist(ns {text}, sess {text}, elec {text}, words MEDIUMTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE me {text};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    SELECT s.node INTO me FROM tenure_sessions s
        WHERE s.id = sess AND s.namespace = ns AND s.state = 'live' FOR UPDATE;
    IF me IS NOT NULL THEN
        INSERT INTO tenure_workers (namespace, election, session, node, document) VALUES (ns, elec, sess, me, words)
            ON DUPLICATE KEY UPDATE document = words;
    END IF;
    COMMIT;
    SELECT IF(me IS NULL, '{"lost": true}', JSON_OBJECT('store', store));
END
//
DROP PROCEDURE IF EXISTS tenure_arrange
//
CREATE PROCEDURE tenure_arrange(ns {text}, elec {text}, list_name {text}, seen BIGINT,
    words MEDIUMTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA
arranging: BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE at, last, place, changed BIGINT;
    DECLARE said MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL tenure_begin(store);
    CALL tenure_lock_ledger(ns, elec, at, last);
    SELECT t.number, t.revision, t.document INTO place, changed, said FROM tenure_task_lists t
        WHERE t.namespace = ns AND t.election = elec AND t.name = list_name;
    IF place IS NULL OR NOT (said <=> words COLLATE utf8mb4_bin) THEN
        IF COALESCE(changed, 0) <> seen THEN
            ROLLBACK;
            SELECT JSON_OBJECT('store', store);
            LEAVE arranging;
        END IF;
        SET changed = at + 1;
        IF place IS NULL THEN
            -- Numbers are never freed, so the next one is how many there are.
            SELECT COUNT(*) INTO place FROM tenure_task_lists t WHERE t.namespace = ns AND t.election = elec;
            INSERT INTO tenure_task_lists (namespace, election, number, name, revision, document)
                VALUES (ns, elec, place, list_name, changed, words);
        ELSE
            UPDATE tenure_task_lists SET revision = changed, document = words
                WHERE namespace = ns AND election = elec AND number = place;
        END IF;
        UPDATE tenure_ledgers SET revision = changed WHERE namespace = ns AND election = elec;
    END IF;
    COMMIT;
    SELECT JSON_OBJECT('store', store, 'number', place + 0, 'revision', changed + 0);
END
//
DROP PROCEDURE IF EXISTS tenure_survey
//
CREATE PROCEDURE tenure_survey(ns {text}, elec {text}) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    CALL tenure_begin(store);
    SELECT store;
    SELECT JSON_OBJECT('ledger', JSON_OBJECT('revision', COALESCE(MAX(l.revision), 0) + 0))
        FROM tenure_ledgers l WHERE l.namespace = ns AND l.election = elec;
    SELECT JSON_OBJECT('worker', JSON_OBJECT('node', k.node, 'session', k.session, 'document', k.document,
        'pulse', JSON_EXTRACT(IF(s.id IS NULL, NULL, u.pulse), '$')))
        FROM tenure_workers k
        LEFT JOIN tenure_sessions s ON s.id = k.session AND s.state = 'live'
        LEFT JOIN tenure_pulses u ON u.id = s.id
        WHERE k.namespace = ns AND k.election = elec AND (s.id IS NOT NULL OR EXISTS (
            SELECT 1 FROM tenure_partitions p
            WHERE p.namespace = ns AND p.election = elec AND p.owner = k.session));
    COMMIT;
END
//
DROP PROCEDURE IF EXISTS tenure_leaf
//
-- What has changed since, in the order of revisions. Entries of one revision are not torn apart. The ledger's own
-- revision is read first: what changes meanwhile is for the next time.
CREATE PROCEDURE tenure_leaf(ns {text}, elec {text}, since BIGINT, of_session {text}, most BIGINT) READS SQL DATA
BEGIN
    DECLARE store TEXT CHARACTER SET utf8mb4;
    DECLARE at, last, heard BIGINT DEFAULT 0;
    DECLARE end_at BIGINT;
    DECLARE more INT DEFAULT 0;
    SET most = most - 1;
    CALL tenure_begin(store);
    SELECT COALESCE(MAX(l.revision), 0), COALESCE(MAX(l.published), 0) INTO at, last FROM tenure_ledgers l
        WHERE l.namespace = ns AND l.election = elec;
    SELECT COALESCE(MAX(s.notices), 0) INTO heard FROM tenure_sessions s WHERE s.id = of_session;
    IF of_session IS NULL THEN
        SELECT MAX(o.revision) INTO end_at FROM (SELECT p.revision FROM tenure_partitions p
            WHERE p.namespace = ns AND p.election = elec AND p.revision > since
            ORDER BY p.revision LIMIT 1 OFFSET most) o;
    ELSE
        SELECT MAX(o.revision) INTO end_at FROM (SELECT p.revision FROM tenure_partitions p
            WHERE p.namespace = ns AND p.election = elec AND p.owner = of_session AND p.revision > since
            ORDER BY p.revision LIMIT 1 OFFSET most) o;
    END IF;
    SET end_at = LEAST(COALESCE(end_at, at), at);
    SELECT COUNT(*) INTO more FROM (SELECT 1 FROM tenure_partitions p
        WHERE p.namespace = ns AND p.election = elec AND p.revision > end_at AND p.revision <= at
          AND (of_session IS NULL OR p.owner = of_session) LIMIT 1) o;
    SELECT store;
    SELECT JSON_OBJECT('ledger', JSON_OBJECT('revision', at + 0, 'published', last + 0, 'notices', heard + 0,
        'more', more + 0));
    IF of_session IS NULL THEN
        SELECT JSON_OBJECT('entry', JSON_ARRAY(p.list, p.number, p.revision, p.owner, p.revoking))
            FROM tenure_partitions p
            WHERE p.namespace = ns AND p.election = elec AND p.revision > since AND p.revision <= end_at
            ORDER BY p.revision, p.list, p.number;
    ELSE
        SELECT JSON_OBJECT('entry', JSON_ARRAY(p.list, p.number, p.revision, p.owner, p.revoking))
            FROM tenure_partitions p
            WHERE p.namespace = ns AND p.election = elec AND p.owner = of_session AND p.revision > since
              AND p.revision <= end_at
            ORDER BY p.revision, p.list, p.number;
    END IF;
    SELECT JSON_OBJECT('listed', JSON_OBJECT('number', t.number, 'name', t.name, 'revision', t.revision,
        'document', t.document))
        FROM tenure_task_lists t WHERE t.namespace = ns AND t.election = elec AND t.revision > since ORDER BY t.number;
    COMMIT;
END
