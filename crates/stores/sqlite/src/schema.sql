-- Version 1. People read these tables and views with `sqlite3 FILE`; Tenure alone writes them.
-- Every *_at column is for people (UTC, microseconds). Nothing is ever decided by one.

CREATE TABLE tenure_meta (
    only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
    schema     INTEGER NOT NULL,  -- the version of this layout
    store      TEXT    NOT NULL,  -- names this history: part of the store's identity
    created_at TEXT    NOT NULL
) STRICT;

CREATE TABLE tenure_sessions (
    id              TEXT    NOT NULL PRIMARY KEY,  -- hexadecimal
    namespace       TEXT    NOT NULL,
    node            TEXT    NOT NULL,
    hostname        TEXT    NOT NULL,
    address         TEXT,
    pid             INTEGER NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('live', 'left', 'expired')),
    sequence        INTEGER NOT NULL,              -- counts renewals: what rivals compare
    ttl_ms          INTEGER NOT NULL,
    attempt         INTEGER NOT NULL DEFAULT 0,    -- claims below this number were overtaken
    notices         INTEGER NOT NULL DEFAULT 0,    -- how often others have left word
    grants          INTEGER NOT NULL DEFAULT 0,    -- how many terms it was granted: fewer means a restored file
    opened_at       TEXT    NOT NULL,
    renewed_at      TEXT    NOT NULL,
    renewed_boot_ns INTEGER NOT NULL,              -- boot clock of the writer …
    clock           TEXT                           -- … and which clock that was
) STRICT;
-- Two live processes never share a node id.
CREATE UNIQUE INDEX tenure_sessions_live ON tenure_sessions (namespace, node) WHERE state = 'live';
CREATE INDEX tenure_sessions_node ON tenure_sessions (namespace, node);

CREATE TABLE tenure_elections (
    namespace   TEXT    NOT NULL,
    election    TEXT    NOT NULL,
    term        INTEGER NOT NULL,  -- the highest term granted
    floor       INTEGER NOT NULL,  -- the highest term heard of: the next grant is above both
    session     TEXT REFERENCES tenure_sessions (id),  -- who holds the lease; NULL: free
    attempt     INTEGER NOT NULL,  -- the holder's latest claim
    leader      TEXT,              -- who leads, or led last
    heir        TEXT,              -- for whom the free lease is kept
    ended       INTEGER NOT NULL,  -- the term under which it was last deleted
    stood       INTEGER NOT NULL,  -- whether somebody has stood since
    events      INTEGER NOT NULL,  -- the sequence of its last event
    asked       INTEGER NOT NULL DEFAULT 0,  -- the term that its leader was asked to give up …
    asked_for   TEXT,              -- … and for whom; NULL: for the first in line
    acquired_at TEXT,
    PRIMARY KEY (namespace, election)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenure_elections_session ON tenure_elections (session) WHERE session IS NOT NULL;
CREATE INDEX tenure_elections_heir ON tenure_elections (namespace, heir) WHERE heir IS NOT NULL;

CREATE TABLE tenure_candidates (
    arrival   INTEGER PRIMARY KEY,  -- orders candidates of one priority
    namespace TEXT    NOT NULL,
    election  TEXT    NOT NULL,
    session   TEXT    NOT NULL REFERENCES tenure_sessions (id) ON DELETE CASCADE,
    priority  INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    since     TEXT    NOT NULL,
    UNIQUE (namespace, election, session)
) STRICT;
CREATE INDEX tenure_candidates_session ON tenure_candidates (session);

CREATE TABLE tenure_events (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, also after trimming
    namespace TEXT    NOT NULL,
    election  TEXT,               -- NULL for events of nodes
    sequence  INTEGER NOT NULL,   -- 1, 2, 3, … per election; 0 for events of nodes
    time      TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    node      TEXT,
    term      INTEGER NOT NULL,
    data      TEXT    NOT NULL    -- a JSON object
) STRICT;
CREATE UNIQUE INDEX tenure_events_of_election ON tenure_events (namespace, election, sequence);
CREATE INDEX tenure_events_of_nodes ON tenure_events (namespace, id) WHERE election IS NULL;

CREATE VIEW tenure_leases (
    election, leader, term, state, acquired_at, renewed_at, expires_at, hostname, address, namespace
) AS SELECT
    e.election,
    s.node,
    max(e.term, e.floor),
    CASE WHEN s.id IS NOT NULL THEN 'held'
         WHEN NOT e.stood THEN 'deleted'
         WHEN e.heir IS NOT NULL THEN 'kept for ' || e.heir
         ELSE 'free' END,
    CASE WHEN s.id IS NOT NULL THEN e.acquired_at END,
    s.renewed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', s.renewed_at, (s.ttl_ms / 1000.0) || ' seconds'),
    s.hostname,
    s.address,
    e.namespace
FROM tenure_elections e LEFT JOIN tenure_sessions s ON s.id = e.session AND s.state = 'live';

CREATE VIEW tenure_nodes (
    node, state, leads, hostname, address, pid, opened_at, renewed_at, expires_at, session, namespace
) AS SELECT
    s.node,
    s.state,
    (SELECT count(*) FROM tenure_elections e WHERE e.session = s.id),
    s.hostname,
    s.address,
    s.pid,
    s.opened_at,
    s.renewed_at,
    CASE WHEN s.state = 'live'
         THEN strftime('%Y-%m-%dT%H:%M:%fZ', s.renewed_at, (s.ttl_ms / 1000.0) || ' seconds') END,
    s.id,
    s.namespace
FROM tenure_sessions s;

-- The promises, also against well-meant edits by hand. A term that falls, or a live session that
-- vanishes, would be two leaders; none of Tenure's own statements does any of this.

CREATE TRIGGER tenure_elections_stay BEFORE DELETE ON tenure_elections
BEGIN SELECT RAISE(ABORT, 'tenure: the row keeps the election''s term from being granted twice; use Election::delete'); END;

CREATE TRIGGER tenure_elections_keep_their_name BEFORE UPDATE OF namespace, election ON tenure_elections
WHEN NEW.namespace <> OLD.namespace OR NEW.election <> OLD.election
BEGIN SELECT RAISE(ABORT, 'tenure: an election cannot be renamed; use Election::delete'); END;

CREATE TRIGGER tenure_terms_rise BEFORE UPDATE OF term, floor, ended ON tenure_elections
WHEN NEW.term < OLD.term OR NEW.floor < OLD.floor OR NEW.ended < OLD.ended
BEGIN SELECT RAISE(ABORT, 'tenure: terms only rise; to end an election use Election::delete'); END;

-- INSERT OR REPLACE would delete the old row without asking the trigger above.
CREATE TRIGGER tenure_elections_are_not_replaced BEFORE INSERT ON tenure_elections
WHEN EXISTS (SELECT 1 FROM tenure_elections WHERE namespace = NEW.namespace AND election = NEW.election)
BEGIN SELECT RAISE(ABORT, 'tenure: the election is there already; to end it use Election::delete'); END;

CREATE TRIGGER tenure_live_sessions_stay BEFORE DELETE ON tenure_sessions WHEN OLD.state = 'live'
BEGIN SELECT RAISE(ABORT, 'tenure: the session is live, and its node may be leading; stop the node instead'); END;

CREATE TRIGGER tenure_sessions_end_once BEFORE UPDATE OF state ON tenure_sessions
WHEN OLD.state <> 'live' AND NEW.state = 'live'
BEGIN SELECT RAISE(ABORT, 'tenure: a session that is over never lives again; restart the node'); END;

CREATE TRIGGER tenure_meta_stays BEFORE DELETE ON tenure_meta
BEGIN SELECT RAISE(ABORT, 'tenure: the row names this store; its nodes rely on it'); END;
