-- What a role needs that uses Tenure and does nothing else. Run by whoever made the schema.
GRANT USAGE ON SCHEMA tenure TO app;
GRANT SELECT ON tenure.meta, tenure.leases, tenure.nodes TO app;
GRANT SELECT, INSERT, UPDATE, DELETE ON tenure.sessions, tenure.candidates TO app;
GRANT SELECT, INSERT, UPDATE ON tenure.elections TO app;
GRANT SELECT, INSERT, DELETE ON tenure.events TO app;
GRANT SELECT ON tenure.owners TO app;
GRANT SELECT, INSERT, UPDATE ON tenure.ledgers, tenure.task_lists, tenure.partitions TO app;
GRANT SELECT, INSERT, UPDATE, DELETE ON tenure.workers TO app;
