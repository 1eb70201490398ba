-- Version 2: what nodes say of themselves, and what the leader says of all of them.

ALTER TABLE tenure_sessions ADD COLUMN version TEXT NOT NULL DEFAULT '';      -- of Tenure
ALTER TABLE tenure_sessions ADD COLUMN labels  TEXT NOT NULL DEFAULT '{}';    -- a JSON object
ALTER TABLE tenure_elections ADD COLUMN degraded INTEGER NOT NULL DEFAULT 0;  -- its leader finds too few nodes

DROP VIEW tenure_nodes;
CREATE VIEW tenure_nodes (
    node, state, leads, hostname, address, pid, opened_at, renewed_at, expires_at, version, labels, session,
    namespace
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
    s.version,
    s.labels,
    s.id,
    s.namespace
FROM tenure_sessions s;
