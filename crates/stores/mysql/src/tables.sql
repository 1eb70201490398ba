-- Statements are separated by lines of `//`, and each may be repeated: a set-up that was interrupted
-- is carried on. `{text}` stands for the type of a name, the same wherever names are compared.
--
-- People read these tables and views with any client; Tenure alone writes them, through its procedures. Times
-- are UTC whatever the server, the session or daylight saving is set to, and for people to read; but where
-- one is compared with another, `UTC_TIMESTAMP` has given both.

CREATE TABLE IF NOT EXISTS tenure_meta (
    only_row   TINYINT     NOT NULL PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    version    INT         NOT NULL,               -- of this layout
    store      {text}      NOT NULL,               -- names this history
    created_at DATETIME(6) NOT NULL
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_sessions (
    id         {text}      NOT NULL PRIMARY KEY,   -- hexadecimal
    namespace  {text}      NOT NULL,
    node       {text}      NOT NULL,
    hostname   VARCHAR(255)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    address    VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    pid        BIGINT      NOT NULL,
    version    {text}      NOT NULL,               -- of Tenure
    labels     JSON        NOT NULL,               -- what its operator says of it
    state      {text}      NOT NULL CHECK (state IN ('live', 'left', 'expired')),
    sequence   BIGINT      NOT NULL,               -- counts renewals: what rivals compare
    ttl_ms     BIGINT      NOT NULL,
    attempt    BIGINT      NOT NULL DEFAULT 0,     -- claims below this number were overtaken
    notices    BIGINT      NOT NULL DEFAULT 0,     -- how often others have left word
    grants     BIGINT      NOT NULL DEFAULT 0,     -- how many terms it was granted: fewer means a lost write
    opened_at  DATETIME(6) NOT NULL,
    renewed_at DATETIME(6) NOT NULL,
    problem    VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,  -- what its health probe has found; NULL: healthy
    unhealthy_since DATETIME(6),
    health_report   BIGINT NOT NULL DEFAULT 0,     -- reports below this number were overtaken
    alive      {text} AS (IF(state = 'live', node, NULL)),  -- of one name, one may be live
    UNIQUE KEY one_live_session (namespace, alive),
    KEY of_node (namespace, node)
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_elections (
    namespace   {text}  NOT NULL,
    election    {text}  NOT NULL,
    term        BIGINT  NOT NULL DEFAULT 0,        -- the highest term granted
    floor       BIGINT  NOT NULL DEFAULT 0,        -- the highest term heard of: the next grant is above both
    session     {text},                            -- who holds the lease; NULL: free
    attempt     BIGINT  NOT NULL DEFAULT 0,        -- the holder's latest claim
    leader      {text},                            -- who leads, or led last
    ended       BIGINT  NOT NULL DEFAULT 0,        -- the term under which it was last deleted
    stood       TINYINT NOT NULL DEFAULT 0,        -- whether somebody has stood since
    events      BIGINT  NOT NULL DEFAULT 0,        -- the sequence of its last event
    asked       BIGINT  NOT NULL DEFAULT 0,        -- the term that its leader was asked to give up …
    asked_for   {text},                            -- … and for whom; NULL: for the first in line
    degraded    TINYINT NOT NULL DEFAULT 0,        -- its leader finds too few nodes
    created_at  DATETIME(6) NOT NULL,
    acquired_at DATETIME(6),
    PRIMARY KEY (namespace, election),
    KEY held_by (session),
    FOREIGN KEY (session) REFERENCES tenure_sessions (id)
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_candidates (
    arrival   BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,  -- orders candidates of one priority
    namespace {text} NOT NULL,
    election  {text} NOT NULL,
    session   {text} NOT NULL,
    priority  INT    NOT NULL,
    attempt   BIGINT NOT NULL,
    since     DATETIME(6) NOT NULL,
    UNIQUE KEY once (namespace, election, session),
    FOREIGN KEY (session) REFERENCES tenure_sessions (id) ON DELETE CASCADE,
    -- It also keeps the elections from being emptied: that asks no trigger.
    FOREIGN KEY (namespace, election) REFERENCES tenure_elections (namespace, election)
) ENGINE = InnoDB
//
-- Whoever writes history holds the row of its namespace until it commits: so ids are given in the order of
-- commits, and whoever goes on after the last one that it has read misses nothing.
CREATE TABLE IF NOT EXISTS tenure_histories (
    namespace {text} NOT NULL PRIMARY KEY,
    events    BIGINT NOT NULL                      -- the id of its last event
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS tenure_events (
    namespace {text}      NOT NULL,
    id        BIGINT      NOT NULL,
    election  {text},                              -- NULL for events of nodes
    sequence  BIGINT      NOT NULL,                -- 1, 2, 3, … per election; 0 for events of nodes
    time      DATETIME(6) NOT NULL,
    kind      {text}      NOT NULL,
    node      {text},
    term      BIGINT      NOT NULL,
    data      JSON        NOT NULL,
    PRIMARY KEY (namespace, id),
    UNIQUE KEY in_order (namespace, election, sequence)
) ENGINE = InnoDB
//
-- Connections that sleep until something happens. A row proves nothing: the lock does that its connection holds.
CREATE TABLE IF NOT EXISTS tenure_listeners (
    connection BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    namespace  {text} NOT NULL,
    KEY of_namespace (namespace)
) ENGINE = InnoDB
//
CREATE OR REPLACE VIEW tenure_leases AS SELECT
    e.election,
    s.node AS leader,
    GREATEST(e.term, e.floor) AS term,
    CASE WHEN s.id IS NOT NULL THEN 'held'
         WHEN e.stood = 0 THEN 'deleted'
         ELSE 'free' END AS state,
    s.renewed_at + INTERVAL s.ttl_ms * 1000 MICROSECOND AS expires_at,
    e.created_at,
    IF(s.id IS NULL, NULL, e.acquired_at) AS acquired_at,
    s.renewed_at,
    s.hostname,
    s.address,
    e.namespace
FROM tenure_elections e LEFT JOIN tenure_sessions s ON s.id = e.session AND s.state = 'live'
//
CREATE OR REPLACE VIEW tenure_nodes AS SELECT
    s.node AS id,
    s.hostname,
    s.address,
    s.state,
    (SELECT MAX(e.term) FROM tenure_elections e WHERE e.session = s.id) AS term,
    (SELECT COUNT(*) FROM tenure_elections e WHERE e.session = s.id) AS leads,
    s.renewed_at AS last_heartbeat,
    CASE WHEN s.state <> 'live' THEN s.state
         WHEN s.renewed_at + INTERVAL s.ttl_ms * 1000 MICROSECOND < UTC_TIMESTAMP(6) THEN 'silent'
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
FROM tenure_sessions s
//
-- A sign of life, in words. Its age is counted by one clock, and told with what that clock shows.
CREATE OR REPLACE VIEW tenure_pulses AS SELECT s.id, JSON_OBJECT(
    'session', s.id, 'sequence', s.sequence, 'ttl_ms', s.ttl_ms,
    'age_us', TIMESTAMPDIFF(MICROSECOND, s.renewed_at, UTC_TIMESTAMP(6)),
    'clock_us', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) AS pulse
FROM tenure_sessions s
//
-- An election, in words.
CREATE OR REPLACE VIEW tenure_records AS SELECT e.namespace, e.election, e.events, JSON_OBJECT(
    'term', GREATEST(e.term, e.floor),
    'ended', e.ended,
    'asked', e.asked, 'asked_for', e.asked_for,
    'holder', JSON_EXTRACT(IF(s.id IS NULL, NULL,
        JSON_OBJECT('node', s.node, 'term', e.term, 'pulse', JSON_EXTRACT(p.pulse, '$'))), '$')) AS record
FROM tenure_elections e
    LEFT JOIN tenure_sessions s ON s.id = e.session AND s.state = 'live'
    LEFT JOIN tenure_pulses p ON p.id = s.id
//
-- Who stands. One that has been silent for its whole life by our clock is passed over: that clock decides
-- nothing but who is asked first. In order of succession: ORDER BY priority DESC, arrival.
CREATE OR REPLACE VIEW tenure_standing AS SELECT c.namespace, c.election, s.node, c.priority, c.arrival
FROM tenure_candidates c JOIN tenure_sessions s ON s.id = c.session AND s.state = 'live'
WHERE s.renewed_at + INTERVAL s.ttl_ms * 1000 MICROSECOND >= UTC_TIMESTAMP(6)
