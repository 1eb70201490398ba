-- Version 4: an edit by hand does not give a lease to another session, whose node would be told the term of the old
-- holder while that one leads on.

CREATE TRIGGER tenure_leases_change_hands BEFORE UPDATE OF session, term ON tenure_elections
WHEN NEW.session IS NOT NULL AND NEW.session IS NOT OLD.session AND NEW.term <= OLD.term
BEGIN SELECT RAISE(ABORT, 'tenure: a lease is given only with a higher term; use `tenure transfer`'); END;
