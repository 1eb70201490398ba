//! The guardian's end of the socket to its supervisor: orders come in, reports go out.
//!
//! Neither waits for the other end. The supervisor may be stopped at any moment, also in the middle of an order or with
//! reports that it has not read, and a guardian that waited for it would miss the end of the lease.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

use super::orders::{Order, Report};

pub struct Control {
    socket: UnixStream,
    /// What has come and is no whole line yet.
    received: Vec<u8>,
    /// What has not been sent yet: a few lines per program at most.
    unsent: Vec<u8>,
    /// No more orders come.
    closed: bool,
}

impl Control {
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, received: Vec::new(), unsent: Vec::new(), closed: false })
    }

    /// The first order, which is waited for: before it there is nothing to guard. `None` if there is none.
    pub fn first(&mut self) -> io::Result<Option<Order>> {
        loop {
            if let Some(order) = self.next()? {
                return Ok(Some(order));
            }
            if self.closed {
                return Ok(None);
            }
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next order that has arrived as a whole.
    pub fn next(&mut self) -> io::Result<Option<Order>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let mut chunk = [0; 16 * 1024];
            match self.socket.read(&mut chunk) {
                Ok(0) => {
                    self.closed = true;
                    return Ok(None);
                }
                Ok(read) => self.received.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The other end died with something of ours unread.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.closed = true;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether no more orders come.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Adds a report to those that [`Control::flush`] sends.
    pub fn report(&mut self, report: &Report) -> io::Result<()> {
        serde_json::to_writer(&mut self.unsent, report)?;
        self.unsent.push(b'\n');
        Ok(())
    }

    /// Sends as much as the supervisor has room for.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It has died: its pidfd tells.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
                {
                    self.unsent.clear();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What to wait for on the socket; nothing once it is closed: it would be ready for ever.
    pub fn interest(&self) -> PollFlags {
        let mut interest = PollFlags::empty();
        if !self.closed {
            interest |= PollFlags::IN;
            if !self.unsent.is_empty() {
                interest |= PollFlags::OUT;
            }
        }
        interest
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::orders::Happened;
    use super::*;

    #[test]
    fn an_order_that_has_not_come_as_a_whole_is_not_waited_for() {
        let (mut supervisor, guardian) = UnixStream::pair().unwrap();
        let mut control = Control::new(guardian).unwrap();
        assert!(control.next().unwrap().is_none());
        let line = serde_json::to_string(&Order::Signal(15)).unwrap();
        let (half, rest) = line.split_at(4);
        supervisor.write_all(half.as_bytes()).unwrap();
        assert!(control.next().unwrap().is_none());
        supervisor.write_all(format!("{rest}\n").as_bytes()).unwrap();
        assert!(matches!(control.next().unwrap(), Some(Order::Signal(15))));
        drop(supervisor);
        assert!(control.next().unwrap().is_none());
        assert!(control.is_closed());
    }

    #[test]
    fn reports_that_nobody_reads_are_kept_and_sent_in_order_later() {
        let (mut supervisor, guardian) = UnixStream::pair().unwrap();
        let mut control = Control::new(guardian).unwrap();
        let count = 20_000;
        for ward in 0..count {
            control.report(&Report { ward, what: Happened::TooLate }).unwrap();
            control.flush().unwrap();
        }
        assert!(control.interest().contains(PollFlags::OUT), "more than a socket holds");
        let mut text = String::new();
        let mut chunk = [0; 16 * 1024];
        while text.lines().count() < usize::try_from(count).unwrap() || !text.ends_with('\n') {
            let read = supervisor.read(&mut chunk).unwrap();
            text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
            control.flush().unwrap();
        }
        let wards = text.lines().map(|line| serde_json::from_str::<Report>(line).unwrap().ward);
        assert!(wards.eq(0..count));
    }
}
