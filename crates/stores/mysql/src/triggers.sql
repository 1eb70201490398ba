-- The promises, also against well-meant edits by hand. A server that writes a binary log may refuse to make
-- triggers for a user without SUPER; then they are left out, and `tenure check` says so.

DROP TRIGGER IF EXISTS tenure_elections_stay
//
CREATE TRIGGER tenure_elections_stay BEFORE DELETE ON tenure_elections FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
        'tenure: the row keeps the election''s term from being granted twice; use `tenure delete`'
//
DROP TRIGGER IF EXISTS tenure_elections_keep
//
CREATE TRIGGER tenure_elections_keep BEFORE UPDATE ON tenure_elections FOR EACH ROW
BEGIN
    IF NEW.namespace <> OLD.namespace OR NEW.election <> OLD.election THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
            'tenure: an election cannot be renamed; use `tenure delete`';
    END IF;
    IF NEW.term < OLD.term OR NEW.floor < OLD.floor OR NEW.ended < OLD.ended THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
            'tenure: terms only rise; to end an election use `tenure delete`';
    END IF;
    -- Its new holder would be told the term of the old one.
    IF NEW.session IS NOT NULL AND NOT (NEW.session <=> OLD.session) AND NEW.term <= OLD.term THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
            'tenure: a lease is given only with a higher term; use `tenure transfer`';
    END IF;
END
//
DROP TRIGGER IF EXISTS tenure_sessions_stay
//
CREATE TRIGGER tenure_sessions_stay BEFORE DELETE ON tenure_sessions FOR EACH ROW
    IF OLD.state = 'live' THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
            'tenure: the session is live, and its node may be leading; stop the node instead';
    END IF
//
DROP TRIGGER IF EXISTS tenure_sessions_end_once
//
CREATE TRIGGER tenure_sessions_end_once BEFORE UPDATE ON tenure_sessions FOR EACH ROW
    IF OLD.state <> 'live' AND NEW.state = 'live' THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
            'tenure: a session that is over never lives again; restart the node';
    END IF
//
DROP TRIGGER IF EXISTS tenure_meta_stays
//
CREATE TRIGGER tenure_meta_stays BEFORE DELETE ON tenure_meta FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'tenure: the row names this store, and its nodes rely on it'
