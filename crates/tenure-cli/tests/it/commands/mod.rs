//! The command from outside: what it prints, where, and the code that it exits with.

mod checking;
mod connecting;
mod encryption;
mod handing_over;
mod partitions;
mod passwords;
mod reading;
mod settings;
mod stage;
mod story;
mod streams;
mod usage;
