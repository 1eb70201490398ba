-- Version 6: a lease that is given up is granted to the next candidate in the same transaction, so no free lease is
-- kept for a node.

DROP INDEX tenure_elections_heir;
DROP VIEW tenure_leases;
ALTER TABLE tenure_elections DROP COLUMN heir;

CREATE VIEW tenure_leases (
    election, leader, term, state, acquired_at, renewed_at, expires_at, hostname, address, namespace
) AS SELECT
    e.election,
    s.node,
    max(e.term, e.floor),
    CASE WHEN s.id IS NOT NULL THEN 'held'
         WHEN NOT e.stood THEN 'deleted'
         ELSE 'free' END,
    CASE WHEN s.id IS NOT NULL THEN e.acquired_at END,
    s.renewed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', s.renewed_at, (s.ttl_ms / 1000.0) || ' seconds'),
    s.hostname,
    s.address,
    e.namespace
FROM tenure_elections e LEFT JOIN tenure_sessions s ON s.id = e.session AND s.state = 'live';
