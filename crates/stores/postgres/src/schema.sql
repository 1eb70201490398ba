-- `{schema}` stands for the quoted name of the schema, `{channel}` for a quoted text.
--
-- People read these tables and views with psql; Tenure alone writes them, through the functions below.
-- Every verb is one call of one function: one statement, one round trip, one transaction, whatever stands
-- between us and the server.
--
-- Locks are taken in one order: elections, then their ledgers, then sessions (by id). A fenced transaction of the
-- application may hold the row of its election for as long as its client takes, so whoever waits for an election
-- holds no session: a renewal, which needs the row of its session and nothing else, never waits behind it. Under the
-- lock of a session, elections are locked only with SKIP LOCKED, which does not wait.

CREATE TABLE {schema}.meta (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    version    integer     NOT NULL,                            -- of this layout
    store      uuid        NOT NULL DEFAULT gen_random_uuid(),  -- names this history
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE {schema}.sessions (
    id         text        PRIMARY KEY,          -- hexadecimal
    namespace  text        NOT NULL,
    node       text        NOT NULL,
    hostname   text        NOT NULL,
    address    text,
    pid        bigint      NOT NULL,
    version    text        NOT NULL,             -- of Tenure
    labels     jsonb       NOT NULL,             -- what its operator says of it
    state      text        NOT NULL CHECK (state IN ('live', 'left', 'expired')),
    sequence   bigint      NOT NULL,             -- counts renewals: what rivals compare
    ttl_ms     bigint      NOT NULL,
    attempt    bigint      NOT NULL DEFAULT 0,   -- claims below this number were overtaken
    notices    bigint      NOT NULL DEFAULT 0,   -- how often others have left word
    grants     bigint      NOT NULL DEFAULT 0,   -- how many terms it was granted: fewer means a lost write
    opened_at  timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    problem    text,                             -- what its health probe has found; NULL: healthy
    unhealthy_since timestamptz,
    health_report   bigint NOT NULL DEFAULT 0    -- reports below this number were overtaken
) WITH (fillfactor = 50); -- a renewal finds room beside the old row, and touches no index
CREATE UNIQUE INDEX sessions_live ON {schema}.sessions (namespace, node) WHERE state = 'live';
CREATE INDEX sessions_node ON {schema}.sessions (namespace, node);

CREATE TABLE {schema}.elections (
    namespace   text    NOT NULL,
    election    text    NOT NULL,
    term        bigint  NOT NULL DEFAULT 0,  -- the highest term granted
    floor       bigint  NOT NULL DEFAULT 0,  -- the highest term heard of: the next grant is above both
    session     text    REFERENCES {schema}.sessions (id),  -- who holds the lease; NULL: free
    attempt     bigint  NOT NULL DEFAULT 0,  -- the holder's latest claim
    leader      text,                        -- who leads, or led last
    ended       bigint  NOT NULL DEFAULT 0,  -- the term under which it was last deleted
    stood       boolean NOT NULL DEFAULT false,  -- whether somebody has stood since
    events      bigint  NOT NULL DEFAULT 0,  -- the sequence of its last event
    asked       bigint  NOT NULL DEFAULT 0,  -- the term that its leader was asked to give up …
    asked_for   text,                        -- … and for whom; NULL: for the first in line
    degraded    boolean NOT NULL DEFAULT false,  -- its leader finds too few nodes
    acquired_at timestamptz,
    PRIMARY KEY (namespace, election)
);
CREATE INDEX elections_session ON {schema}.elections (session) WHERE session IS NOT NULL;

CREATE TABLE {schema}.candidates (
    arrival   bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- orders candidates of one priority
    namespace text    NOT NULL,
    election  text    NOT NULL,
    session   text    NOT NULL REFERENCES {schema}.sessions (id) ON DELETE CASCADE,
    priority  integer NOT NULL,
    attempt   bigint  NOT NULL,
    since     timestamptz NOT NULL,
    UNIQUE (namespace, election, session)
);
CREATE INDEX candidates_session ON {schema}.candidates (session);

CREATE TABLE {schema}.events (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    written   xid8        NOT NULL DEFAULT pg_current_xact_id(),  -- by which transaction (of the cluster that wrote it)
    namespace text        NOT NULL,
    election  text,                 -- NULL for events of nodes
    sequence  bigint      NOT NULL, -- 1, 2, 3, … per election; 0 for events of nodes
    time      timestamptz NOT NULL,
    kind      text        NOT NULL,
    node      text,
    term      bigint      NOT NULL,
    data      jsonb       NOT NULL
);
CREATE UNIQUE INDEX events_of_election ON {schema}.events (namespace, election, sequence) WHERE election IS NOT NULL;
CREATE INDEX events_of_nodes ON {schema}.events (namespace, id) WHERE election IS NULL;

-- ----- for people -----------------------------------------------------------------------------

CREATE VIEW {schema}.leases AS SELECT
    e.election,
    s.node AS leader,
    greatest(e.term, e.floor) AS term,
    CASE WHEN s.id IS NOT NULL THEN 'held'
         WHEN NOT e.stood THEN 'deleted'
         ELSE 'free' END AS state,
    CASE WHEN s.id IS NOT NULL THEN e.acquired_at END AS acquired_at,
    s.renewed_at,
    s.renewed_at + s.ttl_ms * interval '1 millisecond' AS expires_at,
    s.hostname,
    s.address,
    e.namespace
FROM {schema}.elections e LEFT JOIN {schema}.sessions s ON s.id = e.session AND s.state = 'live';

CREATE VIEW {schema}.nodes AS SELECT
    s.node AS id,
    s.hostname,
    s.address,
    s.state,
    (SELECT max(e.term) FROM {schema}.elections e WHERE e.session = s.id) AS term,
    (SELECT count(*) FROM {schema}.elections e WHERE e.session = s.id) AS leads,
    s.renewed_at AS last_heartbeat,
    CASE WHEN s.state <> 'live' THEN s.state
         WHEN clock_timestamp() - s.renewed_at > s.ttl_ms * interval '1 millisecond' THEN 'silent'
         WHEN s.problem IS NOT NULL THEN 'unhealthy'
         ELSE 'healthy' END AS health,
    s.problem,
    s.unhealthy_since,
    s.pid,
    s.version,
    s.labels,
    s.opened_at,
    s.id AS session,
    s.namespace
FROM {schema}.sessions s;

-- ----- the promises, also against well-meant edits by hand ------------------------------------

CREATE FUNCTION {schema}.forbid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'tenure: %', TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER elections_stay BEFORE DELETE ON {schema}.elections FOR EACH ROW
    EXECUTE FUNCTION {schema}.forbid('the row keeps the election''s term from being granted twice; use `tenure delete`');
CREATE TRIGGER elections_keep_their_name BEFORE UPDATE ON {schema}.elections FOR EACH ROW
    WHEN (NEW.namespace <> OLD.namespace OR NEW.election <> OLD.election)
    EXECUTE FUNCTION {schema}.forbid('an election cannot be renamed; use `tenure delete`');
-- Its new holder would be told the term of the old one.
CREATE TRIGGER leases_change_hands BEFORE UPDATE ON {schema}.elections FOR EACH ROW
    WHEN (NEW.session IS DISTINCT FROM OLD.session AND NEW.session IS NOT NULL AND NEW.term <= OLD.term)
    EXECUTE FUNCTION {schema}.forbid('a lease is given only with a higher term; use `tenure transfer`');
CREATE TRIGGER terms_rise BEFORE UPDATE ON {schema}.elections FOR EACH ROW
    WHEN (NEW.term < OLD.term OR NEW.floor < OLD.floor OR NEW.ended < OLD.ended)
    EXECUTE FUNCTION {schema}.forbid('terms only rise; to end an election use `tenure delete`');
CREATE TRIGGER live_sessions_stay BEFORE DELETE ON {schema}.sessions FOR EACH ROW WHEN (OLD.state = 'live')
    EXECUTE FUNCTION {schema}.forbid('the session is live, and its node may be leading; stop the node instead');
CREATE TRIGGER sessions_end_once BEFORE UPDATE ON {schema}.sessions FOR EACH ROW
    WHEN (OLD.state <> 'live' AND NEW.state = 'live')
    EXECUTE FUNCTION {schema}.forbid('a session that is over never lives again; restart the node');
CREATE TRIGGER meta_stays BEFORE DELETE ON {schema}.meta FOR EACH ROW
    EXECUTE FUNCTION {schema}.forbid('the row names this store, and its nodes rely on it');
-- To empty a table asks no trigger of its rows.
CREATE TRIGGER elections_all_stay BEFORE TRUNCATE ON {schema}.elections
    EXECUTE FUNCTION {schema}.forbid('the rows keep terms from being granted twice; use `tenure delete`');
CREATE TRIGGER sessions_all_stay BEFORE TRUNCATE ON {schema}.sessions
    EXECUTE FUNCTION {schema}.forbid('sessions may be live, and their nodes leading; stop the nodes instead');
CREATE TRIGGER meta_all_stays BEFORE TRUNCATE ON {schema}.meta
    EXECUTE FUNCTION {schema}.forbid('the row names this store, and its nodes rely on it');

-- ----- parts of the verbs ---------------------------------------------------------------------

-- Which store this is: the history, the cluster that tells it, and its timeline, which a promotion changes.
CREATE FUNCTION {schema}.identity() RETURNS text LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT m.store || ' ' || (SELECT system_identifier FROM pg_control_system())
           || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    FROM meta m
$$;

-- What is answered is on disk, whatever the database, the role or the pool has been told; and nobody
-- waits for a lock for ever.
CREATE FUNCTION {schema}.careful() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM set_config('lock_timeout', '1s', true);
    -- That a wait for a synchronous standby was cancelled is a mere warning, and we must hear it.
    PERFORM set_config('client_min_messages', 'warning', true);
END $$;

CREATE FUNCTION {schema}.pulse(s {schema}.sessions) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'session', s.id, 'sequence', s.sequence, 'ttl_ms', s.ttl_ms,
        'age_us', (extract(epoch FROM clock.now - s.renewed_at) * 1000000)::bigint,
        'clock_us', (extract(epoch FROM clock.now) * 1000000)::bigint)
    FROM (SELECT clock_timestamp() AS now) clock
$$;

CREATE FUNCTION {schema}.record(e {schema}.elections) RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object(
        'term', greatest(e.term, e.floor), 'ended', e.ended,
        'asked', e.asked, 'asked_for', e.asked_for,
        'holder', (SELECT jsonb_build_object('node', s.node, 'term', e.term, 'pulse', pulse(s))
                   FROM sessions s WHERE s.id = e.session AND s.state = 'live'))
$$;

-- Who stands, in order of succession. One that has been silent for its whole life by our clock is passed
-- over: that clock decides nothing but who is asked first.
CREATE FUNCTION {schema}.standing(ns text, elec text) RETURNS TABLE (node text, priority integer)
LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT s.node, c.priority
    FROM candidates c JOIN sessions s ON s.id = c.session AND s.state = 'live'
    WHERE c.namespace = ns AND c.election = elec
      AND clock_timestamp() - s.renewed_at <= s.ttl_ms * interval '1 millisecond'
    ORDER BY c.priority DESC, c.arrival
$$;

-- To whom a lease goes that is given up, or free, in order: the named candidate, and then all that were renewed lately,
-- by priority and arrival. Our clock decides nothing but who is asked first.
CREATE FUNCTION {schema}.in_line(ns text, elec text, named text)
RETURNS TABLE (place bigint, session text, node text, attempt bigint, priority integer)
LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT row_number() OVER (ORDER BY s.node IS NOT DISTINCT FROM named DESC, c.priority DESC, c.arrival),
           c.session, s.node, c.attempt, c.priority
    FROM candidates c JOIN sessions s ON s.id = c.session AND s.state = 'live'
    WHERE c.namespace = ns AND c.election = elec
      AND clock_timestamp() - s.renewed_at <= s.ttl_ms * interval '1 millisecond'
          * CASE WHEN s.node = named THEN 1 ELSE 0.5 END
$$;

-- Word to whoever listens: something about an election, for all or for one node only. Without a name: about the nodes.
-- No name contains a line feed.
CREATE FUNCTION {schema}.notify(ns text, elec text, only_node text)
RETURNS void LANGUAGE sql SET search_path = {schema}, pg_temp AS $$
    SELECT pg_notify({channel}, concat_ws(E'\n', ns, elec, only_node));
$$;

-- A line of history, in the transaction of what it tells.
CREATE FUNCTION {schema}.tell(ns text, elec text, seq bigint, what text, who text, trm bigint, more jsonb)
RETURNS void LANGUAGE sql SET search_path = {schema}, pg_temp AS $$
    INSERT INTO events (namespace, election, sequence, time, kind, node, term, data)
    VALUES (ns, elec, seq, clock_timestamp(), what, who, trm, more);
$$;

-- Drops what is beyond retention, but nothing after `settled`: the transition under way is kept whole.
CREATE FUNCTION {schema}.trim_history(ns text, elec text, last bigint, settled bigint, kept bigint)
RETURNS void LANGUAGE sql SET search_path = {schema}, pg_temp AS $$
    DELETE FROM events WHERE namespace = ns AND election = elec AND sequence <= least(settled, last - kept);
$$;

CREATE FUNCTION {schema}.tell_of_node(ns text, what text, who text, more jsonb, kept bigint)
RETURNS void LANGUAGE sql SET search_path = {schema}, pg_temp AS $$
    INSERT INTO events (namespace, election, sequence, time, kind, node, term, data)
    VALUES (ns, NULL, 0, clock_timestamp(), what, who, 0, more);
    DELETE FROM events WHERE namespace = ns AND election IS NULL AND id <= (
        SELECT id FROM events WHERE namespace = ns AND election IS NULL ORDER BY id DESC LIMIT 1 OFFSET kept);
    SELECT notify(ns, '', NULL);
$$;

-- Why an election has lost its holder, whose session is over. One that has left was superseded by another session of
-- its own process; if its ttl was over before that, it had lapsed.
CREATE FUNCTION {schema}.loss(s {schema}.sessions) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
            'reason', CASE WHEN s.state = 'left' AND silent.ms < s.ttl_ms THEN 'superseded' ELSE 'lapsed' END,
            'silent_ms', silent.ms, 'ttl_ms', s.ttl_ms)
        || CASE s.state WHEN 'left' THEN '{"reopened": true}'::jsonb ELSE '{}' END
    FROM (SELECT floor(greatest(0, extract(epoch FROM clock_timestamp() - s.renewed_at) * 1000))::bigint AS ms) silent
$$;

-- How the end of a term is recorded. A cause has a reason if and only if the term was lost.
CREATE FUNCTION {schema}.ended(cause jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cause ? 'reason' THEN 'leader_lost' ELSE 'leader_resigned' END
$$;

-- Grants the next term of an election, which is locked, to a candidate whose session is locked. `e.events` counts what
-- was told before.
CREATE FUNCTION {schema}.grant_term(e {schema}.elections, settled bigint, sess text, who text, att bigint, kept bigint)
RETURNS bigint LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    previous text := e.leader;
BEGIN
    e.term := greatest(e.term, e.floor) + 1;
    e.events := e.events + 1;
    PERFORM tell(e.namespace, e.election, e.events, 'leader_elected', who, e.term, '{}');
    IF previous <> who THEN
        e.events := e.events + 1;
        PERFORM tell(e.namespace, e.election, e.events, 'leader_changed', who, e.term,
                     jsonb_build_object('previous', previous, 'new', who));
    END IF;
    UPDATE elections SET term = e.term, floor = e.floor, session = sess, attempt = att, leader = who,
        stood = true, events = e.events, acquired_at = clock_timestamp()
        WHERE namespace = e.namespace AND election = e.election;
    UPDATE sessions SET grants = grants + 1 WHERE id = sess;
    DELETE FROM candidates WHERE namespace = e.namespace AND election = e.election AND session = sess;
    PERFORM trim_history(e.namespace, e.election, e.events, settled, kept);
    -- The others are told with their renewals.
    PERFORM notify(e.namespace, e.election, who);
    RETURN e.term;
END $$;

-- Ends a live session, which is locked, and everything that hangs from it: a few statements however much
-- that is. An election that somebody else has locked is passed over: whoever is granted it next finds that its holder's
-- session is over, and tells of the loss. Of the election `claimed` its new leader is told.
CREATE FUNCTION {schema}.end_session(sess text, ending text, kept bigint, cause jsonb DEFAULT '{}', claimed text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    s     sessions;
    more  jsonb := cause;
    led   elections;
    next_session text;
    next_node    text;
    next_attempt bigint;
    held  text[];
    freed text[];
BEGIN
    UPDATE sessions SET state = CASE ending WHEN 'lapsed' THEN 'expired' ELSE 'left' END
        WHERE id = sess AND state = 'live' RETURNING * INTO s;
    IF NOT FOUND THEN RETURN; END IF;
    IF ending <> 'closed' THEN more := loss(s); END IF;
    DELETE FROM candidates WHERE session = sess;
    -- What is closed is passed on, but not more than so much at once. Whoever is busy this moment is not waited for: it
    -- may wait for us.
    IF ending = 'closed' THEN
        FOR led IN
            SELECT * FROM elections o WHERE o.session = sess AND EXISTS (
                SELECT 1 FROM candidates c WHERE c.namespace = o.namespace AND c.election = o.election)
            ORDER BY o.election LIMIT 250 FOR UPDATE SKIP LOCKED
        LOOP
            SELECT i.session, i.node, i.attempt INTO next_session, next_node, next_attempt
                FROM in_line(led.namespace, led.election, NULL) i
                JOIN sessions o ON o.id = i.session AND o.state = 'live'
                ORDER BY i.place LIMIT 1 FOR NO KEY UPDATE OF o SKIP LOCKED;
            CONTINUE WHEN next_session IS NULL;
            PERFORM tell(led.namespace, led.election, led.events + 1, ended(more), s.node, led.term, more);
            led.events := led.events + 1;
            PERFORM grant_term(led, led.events - 1, next_session, next_node, next_attempt, kept);
        END LOOP;
    END IF;
    SELECT array_agg(election) INTO held FROM elections WHERE session = sess;
    IF held IS NOT NULL THEN
        WITH locked AS MATERIALIZED (
            SELECT e.namespace, e.election FROM elections e WHERE e.session = sess FOR UPDATE SKIP LOCKED),
        free AS (
            UPDATE elections e SET session = NULL, events = e.events + 1 FROM locked l
            WHERE e.namespace = l.namespace AND e.election = l.election
            RETURNING e.namespace, e.election, e.events, e.term),
        told AS (
            INSERT INTO events (namespace, election, sequence, time, kind, node, term, data)
            SELECT namespace, election, events, clock_timestamp(), ended(more), s.node, term, more FROM free ORDER BY election)
        SELECT array_agg(election) INTO freed FROM free;
        DELETE FROM events v USING elections e
            WHERE e.namespace = s.namespace AND e.election = ANY (freed)
              AND v.namespace = e.namespace AND v.election = e.election AND v.sequence <= e.events - kept;
        IF cardinality(held) > 100 THEN
            PERFORM notify(s.namespace, NULL, NULL);
        ELSE
            PERFORM notify(s.namespace, e, NULL) FROM unnest(held) e WHERE e IS DISTINCT FROM claimed;
        END IF;
    END IF;
    PERFORM tell_of_node(s.namespace, CASE ending WHEN 'lapsed' THEN 'node_expired' ELSE 'node_left' END, s.node,
        CASE ending WHEN 'lapsed' THEN '{}' ELSE more END, kept);
END $$;

-- ----- the verbs ------------------------------------------------------------------------------

CREATE FUNCTION {schema}.open(ns text, kept bigint, sess text, seq bigint, ttl bigint, who text, host text,
    addr text, process bigint, tenure text, words text, supersedes text, over_session text, over_sequence bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    mine     sessions;
    occupant sessions;
BEGIN
    PERFORM careful();
    PERFORM 1 FROM sessions WHERE id IN (sess, supersedes, over_session) ORDER BY id FOR UPDATE;
    SELECT * INTO mine FROM sessions WHERE id = sess;
    IF FOUND THEN
        IF mine.state <> 'live' OR mine.namespace <> ns THEN RETURN '{"lost": true}'; END IF;
        UPDATE sessions SET sequence = greatest(sequence, seq), renewed_at = clock_timestamp() WHERE id = sess;
        RETURN jsonb_build_object('store', identity(), 'ttl_ms', mine.ttl_ms);
    END IF;
    -- Looked for before anything is ended: an occupied node id changes nothing.
    SELECT * INTO occupant FROM sessions WHERE namespace = ns AND node = who AND state = 'live';
    IF FOUND AND occupant.id IS DISTINCT FROM supersedes THEN
        IF occupant.id IS DISTINCT FROM over_session OR occupant.sequence IS DISTINCT FROM over_sequence THEN
            RETURN jsonb_build_object('store', identity(), 'occupant', pulse(occupant));
        END IF;
        PERFORM end_session(occupant.id, 'lapsed', kept);
    END IF;
    IF EXISTS (SELECT 1 FROM sessions WHERE id = supersedes AND namespace = ns) THEN
        PERFORM end_session(supersedes, 'superseded', kept);
    END IF;
    -- Drops the ended sessions of a node that is back, and the oldest of those that never came back.
    DELETE FROM sessions s WHERE s.namespace = ns AND s.node = who AND s.state <> 'live'
        AND NOT EXISTS (SELECT 1 FROM elections e WHERE e.session = s.id);
    DELETE FROM sessions WHERE id IN (
        SELECT s.id FROM sessions s WHERE s.namespace = ns AND s.state <> 'live'
        AND NOT EXISTS (SELECT 1 FROM elections e WHERE e.session = s.id)
        ORDER BY s.opened_at DESC OFFSET 1000);
    INSERT INTO sessions (id, namespace, node, hostname, address, pid, version, labels, state, sequence, ttl_ms,
                          opened_at, renewed_at)
        VALUES (sess, ns, who, host, addr, process, tenure, words::jsonb, 'live', seq, ttl,
                clock_timestamp(), clock_timestamp())
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        -- Somebody else was first, this very moment.
        SELECT * INTO occupant FROM sessions WHERE namespace = ns AND node = who AND state = 'live';
        IF NOT FOUND THEN RAISE serialization_failure; END IF;
        RETURN jsonb_build_object('store', identity(), 'occupant', pulse(occupant));
    END IF;
    PERFORM tell_of_node(ns, 'node_joined', who,
        jsonb_build_object('hostname', host, 'address', addr, 'pid', process, 'version', tenure), kept);
    RETURN jsonb_build_object('store', identity(), 'ttl_ms', ttl);
END $$;

-- The elections in whose line a session stands: the first 200. A renewal tells of them, and waits for nobody who has
-- locked a whole table.
CREATE FUNCTION {schema}.waits_for(sess text) RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
BEGIN
    LOCK TABLE candidates, elections IN ACCESS SHARE MODE NOWAIT;
    RETURN (SELECT coalesce(jsonb_agg(to_jsonb(w)), '[]') FROM (
        SELECT e.election, record(e) AS record
        FROM candidates c JOIN elections e ON e.namespace = c.namespace AND e.election = c.election
        WHERE c.session = sess ORDER BY c.arrival LIMIT 200) w);
EXCEPTION WHEN lock_not_available THEN
    RETURN '[]';
END $$;

-- One row, however much hangs from the session.
CREATE FUNCTION {schema}.renew(ns text, sess text, seq bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    before sessions;
BEGIN
    PERFORM careful();
    SELECT * INTO before FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN '{"lost": true}'; END IF;
    UPDATE sessions SET sequence = greatest(sequence, seq), renewed_at = clock_timestamp() WHERE id = sess;
    RETURN jsonb_build_object('store', identity(), 'previous', before.sequence, 'notices', before.notices,
                              'grants', before.grants, 'waits_for', waits_for(sess));
END $$;

CREATE FUNCTION {schema}.close(ns text, kept bigint, sess text, cause text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM careful();
    -- Unlike one that has lapsed, a session is closed only when nothing is written under its leases any more.
    PERFORM 1 FROM elections WHERE session = sess ORDER BY election FOR UPDATE;
    PERFORM 1 FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' FOR UPDATE;
    IF FOUND THEN PERFORM end_session(sess, 'closed', kept, cause::jsonb); END IF;
    RETURN jsonb_build_object('store', identity());
END $$;

-- A session that was silent for its whole life, whether or not anything hangs from it.
CREATE FUNCTION {schema}.retire(ns text, kept bigint, over_session text, over_sequence bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    silent boolean;
BEGIN
    PERFORM careful();
    PERFORM 1 FROM sessions WHERE id = over_session AND namespace = ns AND sequence = over_sequence
        AND state = 'live' FOR UPDATE;
    silent := FOUND;
    IF silent THEN PERFORM end_session(over_session, 'lapsed', kept); END IF;
    RETURN jsonb_build_object('store', identity(), 'done', silent);
END $$;

-- Forgets nodes that are no more. The clock that says how old they are decides nothing else.
CREATE FUNCTION {schema}.purge(ns text, older_ms bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM careful();
    DELETE FROM sessions s WHERE s.namespace = ns AND s.state <> 'live'
        AND s.renewed_at < clock_timestamp() - older_ms * interval '1 millisecond'
        AND NOT EXISTS (SELECT 1 FROM elections e WHERE e.session = s.id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN jsonb_build_object('store', identity(), 'gone', gone);
END $$;

CREATE FUNCTION {schema}.claim(ns text, kept bigint, sess text, elec text, att bigint, prio integer,
    over_session text, over_sequence bigint, tell_only boolean, above bigint, since bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me      sessions;
    e       elections;
    over    sessions; -- the holder, if its session is over
    first_session text; -- who is in line and has a higher priority
    first_node    text;
    first_attempt bigint;
    settled bigint;
    held    boolean;
    now     timestamptz := clock_timestamp();
BEGIN
    PERFORM careful();
    -- Looked at without a lock, only so that nothing is made for a session that is over, or for a claim that was
    -- overtaken.
    IF EXISTS (SELECT 1 FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' AND attempt <= att) THEN
        PERFORM 1 FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO elections (namespace, election) VALUES (ns, elec) ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
    IF NOT tell_only AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = e.session AND id <> coalesce(over_session, '') AND state = 'live') THEN
        SELECT i.session, i.node, i.attempt INTO first_session, first_node, first_attempt FROM in_line(ns, elec, NULL) i
            WHERE i.priority > prio AND i.session <> sess AND i.session IS DISTINCT FROM over_session ORDER BY i.place LIMIT 1;
    END IF;
    PERFORM 1 FROM sessions WHERE id IN (sess, over_session, first_session) ORDER BY id FOR NO KEY UPDATE;
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live';
    IF NOT FOUND THEN RETURN '{"lost": true}'; END IF;
    -- The session was opened since it was looked at.
    IF e.election IS NULL AND att >= me.attempt THEN RAISE serialization_failure; END IF;
    settled := e.events;
    IF att < me.attempt OR (since IS NOT NULL AND e.ended > since) THEN
        RETURN jsonb_build_object('store', identity(), 'seen',
            CASE WHEN e.election IS NULL THEN '{"term": 0, "ended": 0, "asked": 0}' ELSE record(e) END);
    END IF;

    e.floor := greatest(e.floor, above);
    IF tell_only THEN
        UPDATE elections SET floor = e.floor WHERE namespace = ns AND election = elec AND floor < e.floor;
        RETURN jsonb_build_object('store', identity(), 'seen', record(e));
    END IF;

    -- Only the holder of this very election: to retire anybody else is not this claim's business.
    IF e.session = over_session AND over_session <> sess
       AND EXISTS (SELECT 1 FROM sessions WHERE id = over_session AND sequence = over_sequence AND state = 'live')
    THEN
        PERFORM end_session(over_session, 'lapsed', kept, claimed => elec);
        SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec;
        e.floor := greatest(e.floor, above);
    END IF;
    held := EXISTS (SELECT 1 FROM sessions WHERE id = e.session AND state = 'live');

    IF held AND e.session = sess THEN
        -- A resignation that was sent before this claim, but arrives after it, is void. Written even if
        -- nothing changes: a grant whose wait for a synchronous standby was cancelled is told only when a
        -- write after it has waited.
        UPDATE elections SET attempt = greatest(attempt, att), floor = e.floor
            WHERE namespace = ns AND election = elec;
        RETURN jsonb_build_object('store', identity(), 'granted', e.term);
    END IF;
    IF NOT e.stood THEN
        e.stood := true;
        e.events := e.events + 1;
        PERFORM tell(ns, elec, e.events, 'election_started', me.node, greatest(e.term, e.floor), '{}');
    END IF;
    IF NOT held THEN
        SELECT * INTO over FROM sessions WHERE id = e.session;
        IF FOUND THEN
            -- Its session was ended while this election was locked, or by hand, so nobody has told of its loss yet.
            e.events := e.events + 1;
            PERFORM tell(ns, elec, e.events, 'leader_lost', e.leader, e.term, loss(over));
        END IF;
        IF NOT EXISTS (SELECT 1 FROM sessions WHERE id = first_session AND state = 'live') THEN
            e.term := grant_term(e, settled, sess, me.node, att, kept);
            RETURN jsonb_build_object('store', identity(), 'granted', e.term);
        END IF;
        PERFORM grant_term(e, settled, first_session, first_node, first_attempt, kept);
        SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec;
    ELSE
        UPDATE elections SET floor = e.floor, stood = e.stood, events = e.events
            WHERE namespace = ns AND election = elec AND (floor, stood, events) IS DISTINCT FROM (e.floor, e.stood, e.events);
        IF e.events > settled THEN
            PERFORM trim_history(ns, elec, e.events, settled, kept);
            PERFORM notify(ns, elec, NULL);
        END IF;
    END IF;
    -- Whoever asks again writes nothing, and keeps its place.
    IF NOT EXISTS (SELECT 1 FROM candidates WHERE namespace = ns AND election = elec AND session = sess AND priority = prio) THEN
        INSERT INTO candidates (namespace, election, session, priority, attempt, since)
            VALUES (ns, elec, sess, prio, att, now)
            ON CONFLICT (namespace, election, session) DO UPDATE
            SET priority = prio, attempt = greatest(candidates.attempt, att);
    END IF;
    RETURN jsonb_build_object('store', identity(), 'seen', record(e));
END $$;

-- The server plans each statement of a function when a connection first comes to it, which takes longer than all
-- that they do. So whoever waits plays a take-over and a hand-over on its connection beforehand: nothing of it is kept,
-- nothing waits for the disk, and nobody hears of it.
CREATE FUNCTION {schema}.rehearse() RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    stage text := 'rehearsal ' || pg_backend_pid();
    first text := stage || ' 1';
    other text := stage || ' 2';
    third text := stage || ' 3';
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    BEGIN
        PERFORM open(stage, 1, first, 1, 10000, first, '', NULL, 0, '', '{}', NULL, NULL, NULL);
        PERFORM open(stage, 1, other, 1, 10000, other, '', NULL, 0, '', '{}', NULL, NULL, NULL);
        PERFORM claim(stage, 1, first, 'play', 1, 0, NULL, NULL, false, 0, NULL);
        PERFORM claim(stage, 1, other, 'play', 1, 0, NULL, NULL, false, 0, NULL);
        PERFORM claim(stage, 1, other, 'play', 2, 0, first, 1, false, 0, NULL);
        PERFORM open(stage, 1, third, 1, 10000, third, '', NULL, 0, '', '{}', NULL, NULL, NULL);
        PERFORM claim(stage, 1, third, 'play', 1, 0, NULL, NULL, false, 0, NULL);
        PERFORM resign(stage, 1, other, 'play', 3, NULL, NULL, '{}');
        PERFORM look(stage, 'play', NULL);
        RAISE SQLSTATE 'TEN00';
    EXCEPTION WHEN SQLSTATE 'TEN00' THEN NULL;
    END;
    RETURN jsonb_build_object('store', identity());
END $$;

-- Under a session that is over there is nothing left to give up, so that is no error.
CREATE FUNCTION {schema}.resign(ns text, kept bigint, sess text, elec text, att bigint, only_term bigint, successor text,
    cause text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me      sessions;
    e       elections;
    next_session text;
    next_node    text;
    next_attempt bigint;
    settled bigint;
    was     boolean;
    more    jsonb := '{}';
BEGIN
    PERFORM careful();
    SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
    IF e.session = sess THEN
        SELECT i.session, i.node, i.attempt INTO next_session, next_node, next_attempt FROM in_line(ns, elec, successor) i
            WHERE i.session <> sess ORDER BY i.place LIMIT 1;
    END IF;
    PERFORM 1 FROM sessions WHERE id IN (sess, next_session) ORDER BY id FOR NO KEY UPDATE;
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live';
    IF NOT FOUND THEN RETURN jsonb_build_object('store', identity()); END IF;
    UPDATE sessions SET attempt = att WHERE id = sess AND attempt < att;
    DELETE FROM candidates WHERE namespace = ns AND election = elec AND session = sess AND attempt <= att;
    IF e.election IS NULL THEN RETURN jsonb_build_object('store', identity()); END IF;
    -- A resignation that arrives late must not undo a claim that was sent after it: its node may have been
    -- told since that it leads.
    IF e.session IS DISTINCT FROM sess OR e.attempt > att OR only_term <> e.term THEN
        RETURN jsonb_build_object('store', identity());
    END IF;
    IF NOT EXISTS (SELECT 1 FROM sessions WHERE id = next_session AND state = 'live') THEN
        next_session := NULL; -- it has left since it was chosen
        next_node := NULL;
    END IF;
    settled := e.events;
    was := e.asked = e.term;
    IF next_node IS NOT NULL AND (was OR next_node = successor) THEN
        more := jsonb_build_object('to', next_node);
        IF NOT was THEN
            e.events := e.events + 1;
            PERFORM tell(ns, elec, e.events, 'transfer_requested', me.node, e.term, more);
        END IF;
    END IF;
    e.events := e.events + 1;
    PERFORM tell(ns, elec, e.events, ended(cause::jsonb), me.node, e.term, cause::jsonb || more);
    IF next_session IS NOT NULL THEN
        PERFORM grant_term(e, settled, next_session, next_node, next_attempt, kept);
    ELSE
        UPDATE elections SET session = NULL, events = e.events WHERE namespace = ns AND election = elec;
        PERFORM trim_history(ns, elec, e.events, settled, kept);
        PERFORM notify(ns, elec, NULL);
    END IF;
    RETURN jsonb_build_object('store', identity());
END $$;

-- Locks the election, and then its holder's session.
CREATE FUNCTION {schema}.lock_election(ns text, elec text) RETURNS {schema}.elections
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    e elections;
BEGIN
    SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
    PERFORM 1 FROM sessions WHERE id = e.session FOR NO KEY UPDATE;
    RETURN e;
END $$;

-- The end consumes a term number, so that whoever compares terms sees that it came after everything before.
-- A holder keeps its lease: only itself or its silence can free it.
CREATE FUNCTION {schema}.end_election(ns text, kept bigint, elec text, force boolean)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    e       elections;
    settled bigint;
    led     boolean;
BEGIN
    PERFORM careful();
    e := lock_election(ns, elec);
    IF e.stood IS NOT TRUE THEN RETURN jsonb_build_object('store', identity(), 'deletion', 'absent'); END IF;
    led := EXISTS (SELECT 1 FROM sessions WHERE id = e.session AND state = 'live');
    IF led AND NOT force THEN RETURN jsonb_build_object('store', identity(), 'deletion', 'led'); END IF;
    settled := e.events;
    e.floor := greatest(e.term, e.floor) + 1;
    e.events := e.events + 1;
    PERFORM tell(ns, elec, e.events, 'election_deleted', NULL, e.floor, '{}');
    UPDATE elections SET floor = e.floor, ended = e.floor, stood = false, events = e.events
        WHERE namespace = ns AND election = elec;
    UPDATE sessions SET notices = notices + 1 WHERE id = e.session AND led;
    DELETE FROM candidates WHERE namespace = ns AND election = elec;
    PERFORM trim_history(ns, elec, e.events, settled, kept);
    PERFORM notify(ns, elec, NULL);
    RETURN jsonb_build_object('store', identity(), 'deletion', 'ended');
END $$;

-- The leader is asked to give its term up. Only it can: it knows when its work has stopped.
CREATE FUNCTION {schema}.petition(ns text, kept bigint, elec text, successor text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    e      elections;
    leader text;
BEGIN
    PERFORM careful();
    e := lock_election(ns, elec);
    SELECT node INTO leader FROM sessions WHERE id = e.session AND state = 'live';
    IF NOT FOUND THEN RETURN jsonb_build_object('store', identity(), 'petition', 'nobody_leads'); END IF;
    IF successor IS NOT NULL AND NOT EXISTS (SELECT 1 FROM standing(ns, elec) WHERE node = successor) THEN
        RETURN jsonb_build_object('store', identity(), 'petition', 'not_standing');
    END IF;
    IF e.asked <> e.term OR e.asked_for IS DISTINCT FROM successor THEN
        PERFORM tell(ns, elec, e.events + 1, 'transfer_requested', leader, e.term,
            CASE WHEN successor IS NULL THEN '{}' ELSE jsonb_build_object('to', successor) END);
        UPDATE elections SET asked = e.term, asked_for = successor, events = e.events + 1
            WHERE namespace = ns AND election = elec;
        UPDATE sessions SET notices = notices + 1 WHERE id = e.session;
        PERFORM trim_history(ns, elec, e.events + 1, e.events, kept);
        PERFORM notify(ns, elec, leader);
    END IF;
    RETURN jsonb_build_object('store', identity(), 'petition', 'noted', 'leader', leader, 'term', e.term);
END $$;

-- What a leader says of the whole cluster: told once.
CREATE FUNCTION {schema}.declare_degraded(ns text, kept bigint, sess text, elec text, trm bigint, bad boolean,
    living bigint, least_living bigint)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me sessions;
    e  elections;
BEGIN
    PERFORM careful();
    SELECT * INTO e FROM elections WHERE namespace = ns AND election = elec FOR UPDATE;
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' FOR NO KEY UPDATE;
    IF me.id IS NULL OR e.session IS DISTINCT FROM sess OR e.term <> trm OR e.degraded = bad THEN
        RETURN jsonb_build_object('store', identity(), 'done', false);
    END IF;
    PERFORM tell(ns, elec, e.events + 1, CASE WHEN bad THEN 'cluster_degraded' ELSE 'cluster_recovered' END,
        me.node, e.term, jsonb_build_object('live', living, 'minimum', least_living));
    UPDATE elections SET degraded = bad, events = e.events + 1 WHERE namespace = ns AND election = elec;
    PERFORM trim_history(ns, elec, e.events + 1, e.events, kept);
    PERFORM notify(ns, elec, NULL);
    RETURN jsonb_build_object('store', identity(), 'done', true);
END $$;

-- What a node reports of its own health: told when it changes. It needs the row of its session, and no election.
CREATE FUNCTION {schema}.report_health(ns text, kept bigint, sess text, report bigint, wrong text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    me      sessions;
    changes boolean;
BEGIN
    PERFORM careful();
    SELECT * INTO me FROM sessions WHERE id = sess AND namespace = ns AND state = 'live' FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN '{"lost": true}'; END IF;
    IF report < me.health_report THEN RETURN jsonb_build_object('store', identity(), 'done', false); END IF;
    changes := (wrong IS NULL) <> (me.problem IS NULL);
    UPDATE sessions SET health_report = report, problem = wrong,
        unhealthy_since = CASE WHEN wrong IS NOT NULL THEN coalesce(unhealthy_since, clock_timestamp()) END
        WHERE id = sess;
    IF changes THEN
        PERFORM tell_of_node(ns, CASE WHEN wrong IS NULL THEN 'node_healthy' ELSE 'node_unhealthy' END, me.node,
            CASE WHEN wrong IS NULL THEN '{}' ELSE jsonb_build_object('problem', wrong) END, kept);
    END IF;
    RETURN jsonb_build_object('store', identity(), 'done', changes);
END $$;

-- ----- to be looked at ------------------------------------------------------------------------

-- A successor is told of its grant by a look. It was on disk before anybody could see it; but if the wait for a synchronous
-- standby was cancelled, it is told only when a write after it has waited.
CREATE FUNCTION {schema}.look(ns text, elec text, sess text)
RETURNS jsonb LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    holder text;
    seen   jsonb;
BEGIN
    SELECT e.session, record(e) INTO holder, seen FROM elections e WHERE e.namespace = ns AND e.election = elec;
    IF holder = sess AND current_setting('synchronous_standby_names') <> '' THEN
        PERFORM careful();
        PERFORM pg_logical_emit_message(true, 'tenure', '');
    END IF;
    RETURN jsonb_build_object('store', identity(), 'seen', seen);
END $$;

CREATE FUNCTION {schema}.list_candidates(ns text, elec text) RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object('store', identity(), 'list',
        (SELECT coalesce(jsonb_agg(to_jsonb(c)), '[]') FROM (SELECT node, priority FROM standing(ns, elec)) c))
$$;

CREATE FUNCTION {schema}.list_elections(ns text) RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object('store', identity(), 'list',
        (SELECT coalesce(jsonb_agg(jsonb_build_object('election', e.election, 'record', record(e))
                                   ORDER BY e.election COLLATE "C"), '[]')
         FROM elections e WHERE e.namespace = ns AND e.events > 0))
$$;

CREATE FUNCTION {schema}.list_nodes(ns text) RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object('store', identity(), 'list', (SELECT coalesce(jsonb_agg(to_jsonb(n)), '[]') FROM (
        SELECT s.node, s.hostname, s.address, s.pid, s.version, s.labels, s.state, pulse(s) AS pulse,
               (extract(epoch FROM s.opened_at) * 1000000)::bigint AS opened_us,
               (extract(epoch FROM s.renewed_at) * 1000000)::bigint AS renewed_us, s.problem,
               (extract(epoch FROM s.unhealthy_since) * 1000000)::bigint AS unhealthy_us
        FROM sessions s WHERE s.namespace = ns ORDER BY s.node COLLATE "C", s.opened_at) n))
$$;

-- Ids are given before transactions end, and not in that order. Whoever goes on after the last one must not
-- miss an earlier one that comes later, so nothing is told that a transaction under way may still come
-- before; except of one election, whose transactions end in order. A row that was not made by the transaction that
-- wrote it was restored from a dump: its number is that of another cluster and means nothing here, and whoever can see
-- it can see all that was restored with it. The newest are chosen from the end, and told from the beginning.
CREATE FUNCTION {schema}.list_events(ns text, elec text, after bigint, most bigint, newest boolean)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = {schema}, pg_temp AS $$
DECLARE
    list jsonb;
BEGIN
    EXECUTE format(
        'SELECT coalesce(jsonb_agg(to_jsonb(told) ORDER BY %1$s), ''[]'') FROM (
            SELECT id, sequence, (extract(epoch FROM time) * 1000000)::bigint AS time_us, kind, election, node, term, data
            FROM events WHERE namespace = $1 AND id > $3 AND %2$s ORDER BY %1$s %3$s LIMIT $4) told',
        CASE WHEN elec IS NULL THEN 'id' ELSE 'sequence' END,
        CASE WHEN elec IS NULL THEN '(written < pg_snapshot_xmin(pg_current_snapshot()) OR xmin <> written::xid)'
             ELSE 'election = $2' END,
        CASE WHEN newest THEN 'DESC' ELSE '' END)
        INTO list USING ns, elec, after, most;
    RETURN jsonb_build_object('store', identity(), 'list', list);
END $$;

CREATE FUNCTION {schema}.examine() RETURNS jsonb LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT jsonb_build_object(
        'store', identity(),
        'version', current_setting('server_version'),
        'recovering', pg_is_in_recovery(),
        'fsync', current_setting('fsync'),
        'full_page_writes', current_setting('full_page_writes'),
        'synchronous_commit', current_setting('synchronous_commit'),
        'standbys', current_setting('synchronous_standby_names'),
        'layout', (SELECT version FROM meta),
        'most', current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - coalesce(current_setting('reserved_connections', true)::int, 0),
        'used', (SELECT sum(numbackends)::bigint FROM pg_stat_database),
        'ours', (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure' AND datname IS NOT NULL))
$$;

INSERT INTO {schema}.meta (version) VALUES ({version});
