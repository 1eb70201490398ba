//! A listening socket that lets nobody in any more.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{BPF_ABS, BPF_B, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, sock_filter, sock_fprog};

/// Where a TCP header has its flags, and the one of them that asks for a connection.
const FLAGS: u32 = 13;
const SYN: u32 = 2;

/// Has the system drop whatever asks for a new connection. Those that are established, also if nobody has accepted
/// them yet, are not concerned; whoever asks hears nothing, and asks again.
///
/// # Errors
/// If the system refuses.
pub fn let_nobody_in(listener: impl AsFd) -> io::Result<()> {
    // If SYN is set, nothing of the packet is kept, otherwise all of it.
    let mut program = [
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, FLAGS),
        step(BPF_JMP | BPF_JSET | BPF_K, 0, 1, SYN),
        step(BPF_RET | BPF_K, 0, 0, 0),
        step(BPF_RET | BPF_K, 0, 0, u32::MAX),
    ];
    let program = sock_fprog { len: 4, filter: program.as_mut_ptr() };
    let length = libc::socklen_t::try_from(size_of::<sock_fprog>()).map_err(io::Error::other)?;
    // SAFETY: the descriptor is borrowed, so it is open; the option is a `sock_fprog`, whose filter points to as many
    // steps as it says; both live until the call has returned, and the system copies them.
    let refused = unsafe {
        libc::setsockopt(
            listener.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A step of a program that judges packets.
fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    // The codes are the system's own, and fit.
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}
