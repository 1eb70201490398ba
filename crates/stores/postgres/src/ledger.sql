-- Who owns which partition. A ledger belongs to an election, whose leader writes it.
--
-- Locks are taken in the order of the other verbs: the election, its ledger, sessions (by id). Entries are written
-- under the lock of their ledger only.

CREATE TABLE {schema}.ledgers (
    namespace text   NOT NULL,
    election  text   NOT NULL,
    revision  bigint NOT NULL DEFAULT 0,  -- rises with every change
    published bigint NOT NULL DEFAULT 0,  -- the revision of the coordinator's last word
    PRIMARY KEY (namespace, election)
);

CREATE TABLE {schema}.task_lists (
    namespace text    NOT NULL,
    election  text    NOT NULL,
    number    integer NOT NULL,           -- what partitions call it
    name      text    NOT NULL,
    revision  bigint  NOT NULL,
    document  text,                       -- NULL: it was dropped
    PRIMARY KEY (namespace, election, number),
    UNIQUE (namespace, election, name)
);

CREATE TABLE {schema}.workers (
    namespace text NOT NULL,
    election  text NOT NULL,
    session   text NOT NULL,              -- which may be over, and forgotten
    node      text NOT NULL,
    document  text NOT NULL,
    PRIMARY KEY (namespace, election, session)
);

CREATE TABLE {schema}.partitions (
    namespace text    NOT NULL,
    election  text    NOT NULL,
    list      bigint  NOT NULL,
    number    bigint  NOT NULL,
    revision  bigint  NOT NULL,           -- when it last changed
    owner     text,                       -- the session that owns it, as long as that is live
    revoking  boolean NOT NULL,           -- whether its owner was asked to give it up
    PRIMARY KEY (namespace, election, list, number)
);
-- PostgreSQL plans the functions below when the table is empty, and keeps to it until the table was first analysed.
-- To it an index by namespace and election is then as good as the primary key, and every look at one entry would read
-- the whole ledger. So this one is only for those who ask for it, by the words of its condition. (For the same reason
-- entries are looked up one by one, and not joined: it would begin with the ledger, of which it expects one entry.)
CREATE INDEX partitions_changed ON {schema}.partitions (namespace, election, revision) WHERE revision > 0;
CREATE INDEX partitions_owned ON {schema}.partitions (owner, revision) WHERE owner IS NOT NULL;

CREATE VIEW {schema}.owners AS SELECT
    p.election,
    l.name AS task_list,
    p.number AS partition,
    s.node,
    CASE WHEN s.id IS NULL THEN 'vacant' WHEN p.revoking THEN 'revoking' ELSE 'owned' END AS state,
    p.revision,
    p.namespace
FROM {schema}.partitions p
LEFT JOIN {schema}.task_lists l ON l.namespace = p.namespace AND l.election = p.election AND l.number = p.list
LEFT JOIN {schema}.sessions s ON s.id = p.owner AND s.state = 'live';

-- A revision that falls would make an old change look like a new one.
CREATE TRIGGER revisions_rise BEFORE UPDATE ON {schema}.ledgers FOR EACH ROW
    WHEN (NEW.revision < OLD.revision OR NEW.published < OLD.published)
    EXECUTE FUNCTION {schema}.forbid('the revisions of a ledger only rise');
CREATE TRIGGER ledgers_stay BEFORE DELETE ON {schema}.ledgers FOR EACH ROW
    EXECUTE FUNCTION {schema}.forbid('the row keeps the ledger''s revisions from being used twice');
CREATE TRIGGER ledgers_all_stay BEFORE TRUNCATE ON {schema}.ledgers
    EXECUTE FUNCTION {schema}.forbid('the rows keep revisions from being used twice');

CREATE FUNCTION {schema}.lock_ledger(ns text, elec text) RETURNS {schema}.ledgers
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    l ledgers;
BEGIN
    SELECT * INTO l FROM ledgers WHERE namespace = ns AND election = elec FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO ledgers (namespace, election) VALUES (ns, elec) ON CONFLICT DO NOTHING;
        SELECT * INTO l FROM ledgers WHERE namespace = ns AND election = elec FOR UPDATE;
    END IF;
    RETURN l;
END $$;

-- `silent` is a list of [session, sequence]; `words` one of [list, number, seen, to], without `to`: to be revoked.
CREATE FUNCTION {schema}.publish(ns text, kept bigint, sess text, elec text, trm bigint, last bigint, silent text,
    words text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me       sessions;
    e        elections;
    l        ledgers;
    refused  jsonb;
    assigned bigint;
    revoked  bigint;
    moved    jsonb; -- [kind, from or to, by node and task list]
    settled  bigint;
BEGIN
    PERFORM careful();
    SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
    IF e.session = sess AND e.term = trm THEN l := lock_ledger(ns, elec); END IF;
    PERFORM 1 FROM sessions WHERE id = sess
        OR id IN (SELECT c->>0 FROM jsonb_array_elements(silent::jsonb) c)
        OR id IN (SELECT c->>3 FROM jsonb_array_elements(words::jsonb) c)
        OR id IN (SELECT (SELECT p.owner FROM partitions p WHERE p.namespace = ns AND p.election = elec
                          AND p.list = (c->>0)::bigint AND p.number = (c->>1)::bigint)
                  FROM jsonb_array_elements(words::jsonb) c)
        ORDER BY id FOR NO KEY UPDATE;
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live';
    IF NOT FOUND THEN RETURN '{"lost": true}'; END IF;
    IF e.session IS DISTINCT FROM sess OR e.term <> trm THEN
        RETURN jsonb_build_object('store', identity(), 'published', 'term_over');
    END IF;
    IF l.published <> last THEN RETURN jsonb_build_object('store', identity(), 'published', 'overtaken'); END IF;
    PERFORM end_session(s.id, 'lapsed', kept) FROM jsonb_array_elements(silent::jsonb) c
        JOIN sessions s ON s.id = c->>0 AND s.sequence = (c->>1)::bigint AND s.namespace = ns AND s.state = 'live';

    WITH wanted AS (
        SELECT (c->>0)::bigint AS list, (c->>1)::bigint AS number, (c->>2)::bigint AS seen, c->>3 AS new_owner, place
        FROM jsonb_array_elements(words::jsonb) WITH ORDINALITY AS t (c, place)),
    judged AS (
        SELECT w.*, p.owner, coalesce(p.revision, 0) = w.seen AND (s.id IS NULL) = (w.new_owner IS NOT NULL)
            AND (w.new_owner IS NULL OR EXISTS (
                SELECT 1 FROM workers k JOIN sessions h ON h.id = k.session AND h.state = 'live' AND h.namespace = ns
                WHERE k.namespace = ns AND k.election = elec AND k.session = w.new_owner)) AS fine
        FROM wanted w
        LEFT JOIN LATERAL (SELECT x.owner, x.revision FROM partitions x WHERE x.namespace = ns AND x.election = elec
                           AND x.list = w.list AND x.number = w.number LIMIT 1) p ON true
        LEFT JOIN sessions s ON s.id = p.owner AND s.state = 'live'),
    written AS (
        INSERT INTO partitions (namespace, election, list, number, revision, owner, revoking)
        SELECT ns, elec, j.list, j.number, l.revision + 1, coalesce(j.new_owner, j.owner), j.new_owner IS NULL
        FROM judged j WHERE j.fine
        ON CONFLICT (namespace, election, list, number) DO UPDATE
            SET revision = excluded.revision, owner = excluded.owner, revoking = excluded.revoking
        RETURNING owner, list, number, revoking),
    shares AS (
        SELECT w.revoking, k.node, coalesce(t.name, w.list::text) AS name,
               jsonb_agg(w.number ORDER BY w.number) AS numbers
        FROM written w
        JOIN workers k ON k.namespace = ns AND k.election = elec AND k.session = w.owner
        LEFT JOIN task_lists t ON t.namespace = ns AND t.election = elec AND t.number = w.list
        GROUP BY 1, 2, 3),
    nodes AS (SELECT s.revoking, s.node, jsonb_object_agg(s.name, s.numbers) AS lists FROM shares s GROUP BY 1, 2),
    told AS (UPDATE sessions SET notices = notices + 1 WHERE id IN (SELECT w.owner FROM written w))
    SELECT coalesce(jsonb_agg(jsonb_build_array(j.list, j.number) ORDER BY j.place) FILTER (WHERE NOT j.fine), '[]'),
           count(*) FILTER (WHERE j.fine AND j.new_owner IS NOT NULL),
           count(*) FILTER (WHERE j.fine AND j.new_owner IS NULL),
           (SELECT jsonb_agg(m.line ORDER BY m.revoking DESC) FROM (
                SELECT n.revoking, CASE WHEN n.revoking
                    THEN jsonb_build_array('partition_revoked', 'from', jsonb_object_agg(n.node, n.lists))
                    ELSE jsonb_build_array('partition_assigned', 'to', jsonb_object_agg(n.node, n.lists)) END AS line
                FROM nodes n GROUP BY n.revoking) m)
    INTO refused, assigned, revoked, moved FROM judged j;

    -- Workers whose session is over, and whom no entry names any more.
    DELETE FROM workers k WHERE k.namespace = ns AND k.election = elec
        AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = k.session AND s.state = 'live')
        AND NOT EXISTS (SELECT 1 FROM partitions p
                        WHERE p.namespace = ns AND p.election = elec AND p.owner = k.session);
    IF assigned + revoked > 0 THEN
        l.revision := l.revision + 1;
        UPDATE ledgers SET revision = l.revision, published = l.revision WHERE namespace = ns AND election = elec;
        settled := e.events;
        PERFORM tell(ns, elec, settled + 1, 'plan_published', me.node, e.term,
            jsonb_build_object('revision', l.revision, 'assigned', assigned, 'revoked', revoked));
        PERFORM tell(ns, elec, settled + 1 + place, line->>0, me.node, e.term,
            jsonb_build_object('revision', l.revision, line->>1, line->2))
            FROM jsonb_array_elements(moved) WITH ORDINALITY AS t (line, place);
        e.events := settled + 1 + jsonb_array_length(moved);
        UPDATE elections SET events = e.events WHERE namespace = ns AND election = elec;
        PERFORM trim_history(ns, elec, e.events, settled, kept);
        PERFORM notify(ns, elec, NULL);
    END IF;
    RETURN jsonb_build_object('store', identity(), 'published', 'written', 'revision', l.revision, 'refused', refused);
END $$;

-- `words` is a list of [list, number, revision of its revocation].
CREATE FUNCTION {schema}.acknowledge(ns text, kept bigint, sess text, elec text, words text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me       sessions;
    e        elections;
    l        ledgers;
    released bigint;
BEGIN
    PERFORM careful();
    SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
    l := lock_ledger(ns, elec);
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN '{"lost": true}'; END IF;
    UPDATE partitions p SET revision = l.revision + 1, owner = NULL, revoking = false
        FROM jsonb_array_elements(words::jsonb) c
        WHERE p.namespace = ns AND p.election = elec AND p.list = (c->>0)::bigint AND p.number = (c->>1)::bigint
          AND p.revision = (c->>2)::bigint AND p.owner = sess AND p.revoking;
    GET DIAGNOSTICS released = ROW_COUNT;
    IF released > 0 THEN
        UPDATE ledgers SET revision = l.revision + 1 WHERE namespace = ns AND election = elec;
        UPDATE sessions SET notices = notices + 1 WHERE id = sess RETURNING notices INTO me.notices;
        PERFORM tell(ns, elec, e.events + 1, 'partition_released', me.node, e.term,
            jsonb_build_object('revision', l.revision + 1, 'released', released));
        UPDATE elections SET events = e.events + 1 WHERE namespace = ns AND election = elec;
        PERFORM trim_history(ns, elec, e.events + 1, e.events, kept);
        PERFORM notify(ns, elec, NULL);
    END IF;
    RETURN jsonb_build_object('store', identity(), 'notices', me.notices);
END $$;

CREATE FUNCTION {schema}.enlist(ns text, sess text, elec text, words text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me sessions;
BEGIN
    PERFORM careful();
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN '{"lost": true}'; END IF;
    INSERT INTO workers (namespace, election, session, node, document) VALUES (ns, elec, sess, me.node, words)
        ON CONFLICT (namespace, election, session) DO UPDATE SET document = words;
    RETURN jsonb_build_object('store', identity());
END $$;

CREATE FUNCTION {schema}.arrange(ns text, elec text, list_name text, seen bigint, words text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    l ledgers;
    t task_lists;
BEGIN
    PERFORM careful();
    l := lock_ledger(ns, elec);
    SELECT * INTO t FROM task_lists WHERE namespace = ns AND election = elec AND name = list_name;
    IF t.number IS NULL OR t.document IS DISTINCT FROM words THEN
        IF coalesce(t.revision, 0) <> seen THEN RETURN jsonb_build_object('store', identity()); END IF;
        -- Numbers are never freed, so the next one is how many there are.
        INSERT INTO task_lists AS known (namespace, election, number, name, revision, document)
            SELECT ns, elec, count(*), list_name, l.revision + 1, words FROM task_lists
            WHERE namespace = ns AND election = elec
            ON CONFLICT (namespace, election, name) DO UPDATE SET revision = l.revision + 1, document = words
            RETURNING * INTO t;
        UPDATE ledgers SET revision = l.revision + 1 WHERE namespace = ns AND election = elec;
    END IF;
    RETURN jsonb_build_object('store', identity(), 'number', t.number, 'revision', t.revision);
END $$;

CREATE FUNCTION {schema}.survey(ns text, elec text) RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object('store', identity(), 'list', (
        SELECT jsonb_build_array(jsonb_build_object('ledger', jsonb_build_object('revision',
                   coalesce((SELECT revision FROM ledgers WHERE namespace = ns AND election = elec), 0))))
               || coalesce(jsonb_agg(jsonb_build_object('worker', jsonb_build_object('node', k.node,
                   'session', k.session, 'document', k.document,
                   'pulse', CASE WHEN s.id IS NOT NULL THEN pulse(s) END))), '[]')
        FROM workers k LEFT JOIN sessions s ON s.id = k.session AND s.state = 'live'
        WHERE k.namespace = ns AND k.election = elec AND (s.id IS NOT NULL OR EXISTS (
            SELECT 1 FROM partitions p WHERE p.namespace = ns AND p.election = elec AND p.owner = k.session))))
$$;

-- What has changed since, in the order of revisions. Entries of one revision are not torn apart.
CREATE FUNCTION {schema}.leaf(ns text, elec text, since bigint, of_session text, most bigint)
RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    WITH changed AS NOT MATERIALIZED (
        SELECT * FROM partitions
        WHERE of_session IS NULL AND namespace = ns AND election = elec AND revision > since AND revision > 0
        UNION ALL
        SELECT * FROM partitions WHERE namespace = ns AND election = elec AND owner = of_session AND revision > since),
    told AS (SELECT * FROM changed ORDER BY revision FETCH FIRST (most) ROWS WITH TIES)
    SELECT jsonb_build_object('store', identity(), 'list',
        jsonb_build_array(jsonb_build_object('ledger', jsonb_build_object(
            'revision', coalesce((SELECT revision FROM ledgers WHERE namespace = ns AND election = elec), 0),
            'published', coalesce((SELECT published FROM ledgers WHERE namespace = ns AND election = elec), 0),
            'notices', coalesce((SELECT notices FROM sessions WHERE id = of_session), 0),
            'more', EXISTS (SELECT 1 FROM changed WHERE revision > (SELECT max(revision) FROM told)))))
        || (SELECT coalesce(jsonb_agg(jsonb_build_object('entry', jsonb_build_array(
                list, number, revision, owner, revoking::int)) ORDER BY revision, list, number), '[]') FROM told)
        || (SELECT coalesce(jsonb_agg(jsonb_build_object('listed', jsonb_build_object('number', number, 'name', name,
                'revision', revision, 'document', document)) ORDER BY number), '[]')
            FROM task_lists WHERE namespace = ns AND election = elec AND revision > since))
$$;
