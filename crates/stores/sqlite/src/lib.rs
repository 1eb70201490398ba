//! Elections in a SQLite file, on one machine.
