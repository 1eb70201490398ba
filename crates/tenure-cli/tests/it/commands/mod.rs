//! The command from outside: what it prints, where, and the code that it exits with.

mod checking;
mod connecting;
#[cfg(feature = "server-tests")]
mod encryption;
mod handing_over;
mod looking;
mod partitions;
#[cfg(feature = "server-tests")]
mod passwords;
mod reading;
mod settings;
mod stage;
mod starting;
mod story;
mod streams;
mod top;
mod usage;
