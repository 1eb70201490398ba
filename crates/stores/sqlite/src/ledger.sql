-- Version 3: who owns which partition. A ledger belongs to an election, whose leader writes it.

CREATE TABLE tenure_ledgers (
    namespace TEXT    NOT NULL,
    election  TEXT    NOT NULL,
    revision  INTEGER NOT NULL DEFAULT 0,  -- rises with every change
    published INTEGER NOT NULL DEFAULT 0,  -- the revision of the coordinator's last word
    PRIMARY KEY (namespace, election)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenure_task_lists (
    namespace TEXT    NOT NULL,
    election  TEXT    NOT NULL,
    number    INTEGER NOT NULL,  -- what partitions call it
    name      TEXT    NOT NULL,
    revision  INTEGER NOT NULL,
    document  TEXT,              -- NULL: it was dropped
    PRIMARY KEY (namespace, election, number),
    UNIQUE (namespace, election, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenure_workers (
    namespace TEXT NOT NULL,
    election  TEXT NOT NULL,
    session   TEXT NOT NULL,     -- which may be over, and forgotten
    node      TEXT NOT NULL,
    document  TEXT NOT NULL,
    PRIMARY KEY (namespace, election, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenure_partitions (
    namespace TEXT    NOT NULL,
    election  TEXT    NOT NULL,
    list      INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    revision  INTEGER NOT NULL,  -- when it last changed
    owner     TEXT,              -- the session that owns it, as long as that is live
    revoking  INTEGER NOT NULL,  -- whether its owner was asked to give it up
    PRIMARY KEY (namespace, election, list, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenure_partitions_changed ON tenure_partitions (namespace, election, revision);
CREATE INDEX tenure_partitions_owned ON tenure_partitions (namespace, election, owner, revision)
    WHERE owner IS NOT NULL;

CREATE VIEW tenure_owners (election, task_list, partition, node, state, revision, namespace) AS SELECT
    p.election,
    l.name,
    p.number,
    s.node,
    CASE WHEN s.id IS NULL THEN 'vacant' WHEN p.revoking THEN 'revoking' ELSE 'owned' END,
    p.revision,
    p.namespace
FROM tenure_partitions p
LEFT JOIN tenure_task_lists l ON l.namespace = p.namespace AND l.election = p.election AND l.number = p.list
LEFT JOIN tenure_sessions s ON s.id = p.owner AND s.state = 'live';

-- A revision that falls would make an old change look like a new one.
CREATE TRIGGER tenure_revisions_rise BEFORE UPDATE ON tenure_ledgers
WHEN NEW.revision < OLD.revision OR NEW.published < OLD.published
BEGIN SELECT RAISE(ABORT, 'tenure: the revisions of a ledger only rise'); END;

CREATE TRIGGER tenure_ledgers_stay BEFORE DELETE ON tenure_ledgers
BEGIN SELECT RAISE(ABORT, 'tenure: the row keeps the ledger''s revisions from being used twice'); END;
