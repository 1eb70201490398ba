//! The guardian: a process of its own that starts the program, knows until when the lease is held,
//! and has the program's tree gone in time, whatever becomes of the supervisor.
//!
//! | what it sees | what it does |
//! |---|---|
//! | the lease's end, on the boot clock | SIGTERM to the tree, then SIGKILL, before anybody else may lead |
//! | the supervisor's end (pidfd) | SIGKILL to the tree; once it is gone, closes the session on its behalf |
//! | the program's end | stops what it left behind, then reports |
//!
//! It renews nothing and decides nothing about leadership. It has one thread, so that the program's
//! death signal (which follows the thread that forked) means the guardian itself.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_open, set_child_subreaper,
    wait,
};
use tenure::{Instant, SessionId};
use tenure_store::clock::{self, Timer};

use super::cgroup::Cgroup;
use super::orders::{End, Hello, Order, Report, Start, Tenancy};
use super::tree;
use crate::{output, store};

/// How often a tree that is being killed is looked at again.
const AGAIN: Duration = Duration::from_millis(1);
/// How long a store that cannot be reached is asked to close the session of a dead supervisor, and
/// how often.
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What the program must not see, beside everything of Tenure's: it is meant for the supervisor.
const NOT_FOR_THE_PROGRAM: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// The whole life of the guardian process; `control` is its end of the socket.
pub fn guard(control: i32) -> ExitCode {
    let watched = Guardian::begin(control).and_then(|guardian| guardian.map_or(Ok(()), Guardian::watch));
    match watched {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("tenure: the guardian has failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

struct Guardian {
    hello: Hello,
    orders: BufReader<UnixStream>,
    reports: UnixStream,
    supervisor: OwnedFd,
    timer: Timer,
    children: UnixStream,
    held: Tenancy,
    ward: Option<Ward>,
    /// The supervisor needs us no more.
    dismissed: bool,
    /// No more orders come.
    closed: bool,
}

/// The program under guard.
struct Ward {
    pid: Pid,
    group: Option<Cgroup>,
    /// How it ended; its tree may still be there.
    end: Option<End>,
    /// It was told to stop, and is killed at this instant.
    kill_at: Option<Instant>,
    /// It outlived its lease, and was ended for that.
    lapsed: bool,
    told_of_immune: bool,
}

impl Guardian {
    /// `None` if the supervisor is gone before anything was to be guarded.
    fn begin(control: i32) -> io::Result<Option<Self>> {
        let reports = UnixStream::from(tenure_sys::adopt(control)?);
        set_child_subreaper(Some(getpid()))?;
        // A handler, not "ignore": that would be inherited by the program. A service manager that ends
        // everybody at once must not end the one who knows how to do it in order.
        let ours = std::sync::Arc::default();
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP]
        {
            signal_hook::flag::register(signal, std::sync::Arc::clone(&ours))?;
        }
        let (children, told) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, told)?;
        let mut orders = BufReader::new(reports.try_clone()?);
        let Some(Order::Hello(hello)) = next(&mut orders)? else { return Ok(None) };
        let parent = Pid::from_raw(hello.supervisor).ok_or(io::ErrorKind::InvalidData)?;
        let Ok(supervisor) = pidfd_open(parent, PidfdFlags::empty()) else { return Ok(None) };
        if getppid() != Some(parent) {
            return Ok(None);
        }
        let timer = Timer::nonblocking()?;
        let held = Tenancy::default();
        Ok(Some(Self {
            hello,
            orders,
            reports,
            supervisor,
            timer,
            children,
            held,
            ward: None,
            dismissed: false,
            closed: false,
        }))
    }

    fn watch(mut self) -> io::Result<()> {
        // What came together with the introduction has been read already: no poll would tell of it.
        if !self.orders.buffer().is_empty() {
            self.obey_all()?;
        }
        loop {
            if self.dismissed {
                self.kill_the_rest();
                return Ok(());
            }
            self.look_after_the_ward()?;
            self.set_timer()?;
            let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
            let (supervisor, timer, children, orders) = {
                let mut fds = [
                    PollFd::new(&self.supervisor, PollFlags::IN),
                    PollFd::new(&self.timer, PollFlags::IN),
                    PollFd::new(&self.children, PollFlags::IN),
                    PollFd::new(self.orders.get_ref(), PollFlags::IN),
                ];
                // A closed socket would be ready for ever.
                let listened = if self.closed { 3 } else { 4 };
                match poll(&mut fds[..listened], None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                (ready(&fds[0]), ready(&fds[1]), ready(&fds[2]), ready(&fds[3]))
            };
            if supervisor {
                self.kill_the_rest();
                act_for_the_dead(&self.hello, self.held);
                return Ok(());
            }
            if timer {
                // Only to be quiet again: what is due is found by the clock.
                let _ = self.timer.wait();
            }
            if children {
                let _ = (&self.children).read(&mut [0; 64]);
            }
            if orders {
                self.obey_all()?;
            }
        }
    }

    // ----- orders ---------------------------------------------------------------------------

    fn obey_all(&mut self) -> io::Result<()> {
        loop {
            let Some(order) = next(&mut self.orders)? else {
                // A process that dies closes its sockets first: in a moment the kernel says that it is
                // gone. Until then nothing is certain but that no more orders come.
                self.closed = true;
                return self.stop(clock::now());
            };
            self.obey(order)?;
            if self.orders.buffer().is_empty() {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Hello(hello) => self.hello = hello,
            Order::Held(held) if held.session.is_some() => self.held = held,
            Order::Held(_) => {
                // The session is over before its time: somebody else may lead soon.
                let until = self.held.until().min(clock::now());
                self.held = Tenancy { session: None, until: until.as_nanos() };
            }
            Order::Start(start) => self.start(start)?,
            Order::Signal(number) => {
                if let (Some(ward), Some(signal)) = (&self.ward, Signal::from_named_raw(number))
                    && ward.end.is_none()
                {
                    // It may have ended just now, but is not reaped yet: the number is still its own.
                    let _ = kill_process(ward.pid, signal);
                }
            }
            Order::Stop { grace } => self.stop(clock::now() + grace)?,
            Order::Dismissed => self.dismissed = true,
        }
        Ok(())
    }

    fn start(&mut self, start: Start) -> io::Result<()> {
        self.held = start.held;
        if clock::now() >= self.held.until() {
            return self.report(&Report::TooLate);
        }
        let mut words = start.program.into_iter().map(std::ffi::OsString::from_vec);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).process_group(self.hello.group);
        for (name, _) in std::env::vars_os() {
            let hidden = name
                .to_str()
                .is_some_and(|name| name.starts_with("TENURE_") || NOT_FOR_THE_PROGRAM.contains(&name));
            if hidden {
                command.env_remove(name);
            }
        }
        command.envs(start.environment);
        let group = if self.hello.cgroup { Cgroup::create() } else { None };
        tenure_sys::bind_to_us(&mut command, group.as_ref().and_then(Cgroup::door));
        match command.spawn() {
            Ok(child) => {
                let pid = child.id();
                let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
                    return Err(io::Error::other("the system gave a process no number"));
                };
                self.ward = Some(Ward {
                    pid: id,
                    group,
                    end: None,
                    kill_at: None,
                    lapsed: false,
                    told_of_immune: false,
                });
                self.report(&Report::Started { pid })
            }
            Err(error) => self.report(&Report::Refused { errno: error.raw_os_error().unwrap_or(0) }),
        }
    }

    /// Tells the tree to stop, and kills it at `kill_at` if it has not.
    fn stop(&mut self, kill_at: Instant) -> io::Result<()> {
        let Some(ward) = &mut self.ward else { return Ok(()) };
        if ward.kill_at.is_none() {
            tree::signal(getpid(), None, Signal::TERM)?;
        }
        ward.kill_at = Some(ward.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
        Ok(())
    }

    fn report(&mut self, report: &Report) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        match self.reports.write_all(&line) {
            // It has died: its pidfd tells.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    // ----- the ward -------------------------------------------------------------------------

    /// Does whatever is due: the end of the lease, of the grace, of the program, of its tree.
    fn look_after_the_ward(&mut self) -> io::Result<()> {
        if self.ward.is_none() {
            return Ok(());
        }
        let now = clock::now();
        // A program that ended before its lease did, ended by itself.
        let gone = self.reap()?;
        if now >= self.held.until() {
            self.stop(self.held.until() + self.hello.patience)?;
            if let Some(ward) = self.ward.as_mut().filter(|ward| ward.end.is_none()) {
                ward.lapsed = true;
            }
        }
        let Some(ward) = &mut self.ward else { return Ok(()) };
        if let (true, Some(end)) = (gone, ward.end) {
            let lapsed = ward.lapsed;
            self.ward = None;
            return self.report(&Report::Ended { end, lapsed });
        }
        if ward.end.is_some() && ward.kill_at.is_none() {
            return self.stop(now + self.hello.grace);
        }
        if ward.kill_at.is_some_and(|at| at <= now) {
            if let Some(group) = &ward.group {
                group.kill();
            }
            let immune = tree::signal(getpid(), None, Signal::KILL)?;
            if !immune.is_empty() && !std::mem::replace(&mut ward.told_of_immune, true) {
                return self.report(&Report::Immune { pids: immune });
            }
        }
        Ok(())
    }

    /// Takes note of everybody who has ended. True if nobody is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(ward) = self.ward.as_mut().filter(|ward| ward.pid == pid) {
                        ward.end = match (status.exit_status(), status.terminating_signal()) {
                            (Some(code), _) => Some(End::Code(code)),
                            (_, Some(signal)) => Some(End::Signal(signal)),
                            _ => ward.end,
                        };
                    }
                }
                Ok(None) => return Ok(false),
                Err(rustix::io::Errno::CHILD) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills the tree, and returns when nothing of it is left.
    fn kill_the_rest(&mut self) {
        while let Ok(false) = self.reap() {
            if let Some(group) = self.ward.as_ref().and_then(|ward| ward.group.as_ref()) {
                group.kill();
            }
            // Whatever fails here is tried again, until the kernel says that nobody is left.
            let _ = tree::signal(getpid(), None, Signal::KILL);
            std::thread::sleep(AGAIN);
        }
        self.ward = None;
    }

    fn set_timer(&self) -> io::Result<()> {
        let now = clock::now();
        let until = self.held.until();
        let wake = self.ward.as_ref().map(|ward| match ward.kill_at {
            Some(at) if at <= now => now + AGAIN,
            Some(at) if until > now => at.min(until),
            Some(at) => at,
            None => until,
        });
        self.timer.set(wake)
    }
}

fn next(orders: &mut BufReader<UnixStream>) -> io::Result<Option<Order>> {
    let mut line = String::new();
    match orders.read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
        // The other end died with something of ours unread.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(error),
    }
}

/// The supervisor is dead, by the kernel's word, and the tree is gone: nothing runs under its session
/// any more, so nobody need wait for it to lapse.
fn act_for_the_dead(hello: &Hello, held: Tenancy) {
    let Some(session) = held.session() else { return };
    if let Err(problem) = close(hello, session, held.until()) {
        output::complain(&format!(
            "tenure: the session of the dead supervisor could not be closed, and lapses by itself: {problem}"
        ));
    }
}

fn close(hello: &Hello, session: SessionId, until: Instant) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    // Nobody waits for it longer than the lease lasts, and a store that is away stays away for a while.
    let until = until.min(clock::now() + PATIENCE);
    let mut pause = FIRST_PAUSE;
    runtime.block_on(async {
        let mut problem = String::from("there was no time left");
        while clock::now() < until {
            let attempt = async {
                let namespace = tenure::Namespace::new(&hello.namespace).unwrap_or_default();
                let store = store::open(hello.store.as_deref(), &namespace).await;
                let store = store.map_err(|error| error.to_string())?;
                store.close(session).await.map_err(|error| error.to_string())
            };
            match tokio::time::timeout(until.since(clock::now()), attempt).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => problem = error,
                Err(_) => problem = String::from("the store did not answer"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(problem)
    })
}
