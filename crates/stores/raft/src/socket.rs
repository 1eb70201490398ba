//! The options of every TCP connection of the group: a peer that is gone is noticed also when nothing is sent.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// After how long without a packet the kernel asks whether the other side is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// How often it asks then.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
/// After so many questions without an answer the connection is over.
const KEEPALIVE_PROBES: u32 = 3;
/// After how long without an acknowledgement of what was sent it is over, too, in milliseconds. The kernel's own
/// limit is about a quarter of an hour.
const UNACKNOWLEDGED_MS: u32 = 25_000;

/// Sets them.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?;
    Ok(())
}
