-- Version 5: what nodes report of their own health.

ALTER TABLE tenure_sessions ADD COLUMN problem         TEXT;  -- what its health probe has found; NULL: healthy
ALTER TABLE tenure_sessions ADD COLUMN unhealthy_since TEXT;
ALTER TABLE tenure_sessions ADD COLUMN health_report   INTEGER NOT NULL DEFAULT 0;  -- reports below were overtaken

DROP VIEW tenure_nodes;
CREATE VIEW tenure_nodes (
    node, state, leads, hostname, address, pid, opened_at, renewed_at, expires_at, version, labels, session,
    namespace, problem, unhealthy_since
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
    s.namespace,
    s.problem,
    s.unhealthy_since
FROM tenure_sessions s;
