//! Deterministic simulation of tenure-core.
