//! The store inside one process, for tests.
