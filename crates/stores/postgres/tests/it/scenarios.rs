//! What every SQL store has to stand: faults, fencing, people, vandalism.

tenure_testkit::sql_suite!(crate::common::Place);
