//! The guardian: a process of its own that starts programs, knows until when the session is held, and has
//! their trees gone in time, whatever becomes of the supervisor.
//!
//! | what it sees | what it does |
//! |---|---|
//! | the session's end, on the boot clock | SIGTERM to all trees, then SIGKILL, before anybody else may lead |
//! | the supervisor's end (pidfd) | SIGKILL to all trees; once they are gone, closes the session on its behalf |
//! | the supervisor stopped past its lease, with the lock of a SQLite file | SIGKILL to the supervisor: nobody else could renew or be elected |
//! | a program's end | stops what it left behind, then reports |
//! | the end of a keeper that had something to keep | SIGKILL to all trees: nobody knows whose what is left is |
//!
//! It renews nothing and decides nothing about leadership. It has one thread, so that the death signal
//! (which follows the thread that forked) means the guardian itself. A program that is alone is its own
//! child; where there may be several, each has a keeper in between.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait,
};
use tenure::Instant;
use tenure_store::clock::{self, Timer};

use super::closing::act_for_the_dead;
use super::control::Control;
use super::keeper::{Said, Word};
use super::lock_watch::LockWatch;
use super::orders::{End, Happened, Hello, Order, Report, Start, Tenancy, Ward as Number};
use super::tree::Snapshot;
use super::ward::Ward;
use crate::{output, store};

/// How often a tree that is being killed is looked at again.
const AGAIN: Duration = Duration::from_millis(1);

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

/// A service manager that ends everybody at once must not end those who know how to do it in order. A handler,
/// not "ignore": that would be inherited by the program.
pub fn outlive_signals() -> io::Result<()> {
    let ours = std::sync::Arc::default();
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, std::sync::Arc::clone(&ours))?;
    }
    Ok(())
}

struct Guardian {
    hello: Hello,
    control: Control,
    supervisor: OwnedFd,
    lock: LockWatch,
    timer: Timer,
    children: UnixStream,
    /// What keepers say, and what has been read of it.
    words: PipeReader,
    heard: Vec<u8>,
    /// Where they say it.
    line: PipeWriter,
    held: Tenancy,
    wards: BTreeMap<Number, Ward>,
    /// A keeper ended before its time, and all that there is has to go.
    spilled: bool,
    /// The supervisor needs us no more.
    dismissed: bool,
}

impl Guardian {
    /// `None` if the supervisor is gone before anything was to be guarded; its session is closed then.
    fn begin(control: i32) -> io::Result<Option<Self>> {
        let mut control = Control::new(UnixStream::from(tenure_sys::adopt(control)?))?;
        set_child_subreaper(Some(getpid()))?;
        outlive_signals()?;
        let (children, told) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, told)?;
        let (words, line) = io::pipe()?;
        rustix::io::ioctl_fionbio(&words, true)?;
        let Some(Order::Hello(hello)) = control.first()? else { return Ok(None) };
        let parent = Pid::from_raw(hello.supervisor).ok_or(io::ErrorKind::InvalidData)?;
        let supervisor = pidfd_open(parent, PidfdFlags::empty()).ok().filter(|_| getppid() == Some(parent));
        let Some(supervisor) = supervisor else {
            // It was quicker to die than we to begin, but may have opened a session, and stood.
            act_for_the_dead(&hello, last_word(&mut control, Tenancy::default()));
            return Ok(None);
        };
        let timer = Timer::nonblocking()?;
        let held = Tenancy::default();
        let lock = LockWatch::new(store::file(hello.store.as_deref()), parent);
        Ok(Some(Self {
            hello,
            control,
            supervisor,
            lock,
            timer,
            children,
            words,
            heard: Vec::new(),
            line,
            held,
            wards: BTreeMap::new(),
            spilled: false,
            dismissed: false,
        }))
    }

    fn watch(mut self) -> io::Result<()> {
        // What came together with the introduction has been read already: no poll would tell of it.
        self.obey_all()?;
        loop {
            if self.dismissed {
                self.kill_the_rest();
                return Ok(());
            }
            self.look_after_the_wards()?;
            self.end_a_supervisor_that_keeps_a_lock();
            self.control.flush()?;
            self.set_timer()?;
            let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
            let (supervisor, timer, children, orders) = {
                let mut fds = [
                    PollFd::new(&self.supervisor, PollFlags::IN),
                    PollFd::new(&self.timer, PollFlags::IN),
                    PollFd::new(&self.children, PollFlags::IN),
                    // What keepers say is read in any case.
                    PollFd::new(&self.words, PollFlags::IN),
                    PollFd::new(&self.control, self.control.interest()),
                ];
                // A closed socket would be ready for ever.
                let listened = if self.control.is_closed() { 4 } else { 5 };
                match poll(&mut fds[..listened], None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                (ready(&fds[0]), ready(&fds[1]), ready(&fds[2]), ready(&fds[4]))
            };
            if supervisor {
                self.kill_the_rest();
                act_for_the_dead(&self.hello, last_word(&mut self.control, self.held));
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
        while let Some(order) = self.control.next()? {
            self.obey(order)?;
        }
        match self.control.is_closed() {
            // A process that dies closes its sockets first: in a moment the kernel says that it is
            // gone. Until then nothing is certain but that no more orders come.
            true => self.stop(|_| true, clock::now()),
            false => Ok(()),
        }
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Hello(hello) => self.hello = hello,
            Order::Held(held) if held.session.is_some() => self.held = held,
            Order::Held(_) => {
                // The session is over before its time: what it held may be another's soon.
                let until = self.held.until().min(clock::now());
                self.held = Tenancy { session: None, until: until.as_nanos() };
            }
            Order::Start(start) => self.start(start)?,
            Order::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.wards.values().for_each(|ward| ward.signal(signal));
                }
            }
            Order::Stop { ward, grace } => self.stop(|number| number == ward, clock::now() + grace)?,
            Order::Dismissed => self.dismissed = true,
        }
        Ok(())
    }

    fn start(&mut self, start: Start) -> io::Result<()> {
        self.held = start.held;
        let number = start.ward;
        if clock::now() >= self.held.until() {
            return self.report(number, Happened::TooLate);
        }
        match Ward::start(&self.hello, start, &self.line) {
            Ok(ward) => {
                let program = ward.program;
                self.wards.insert(number, ward);
                program.map_or(Ok(()), |pid| self.report_start(number, pid))
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                self.report(number, Happened::Refused { errno })
            }
        }
    }

    /// Tells trees to stop, and kills them at `kill_at` if they have not.
    fn stop(&mut self, which: impl Fn(Number) -> bool, kill_at: Instant) -> io::Result<()> {
        let mut seen = None;
        for (_, ward) in self.wards.iter_mut().filter(|(number, _)| which(**number)) {
            if ward.kill_at.is_none() {
                let all = match &seen {
                    Some(all) => all,
                    None => seen.insert(Snapshot::take()?),
                };
                ward.tell(all);
            }
            ward.kill_at = Some(ward.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
        }
        Ok(())
    }

    // ----- reports --------------------------------------------------------------------------

    fn report_start(&mut self, ward: Number, program: Pid) -> io::Result<()> {
        self.report(ward, Happened::Started { pid: program.as_raw_nonzero().get().unsigned_abs() })
    }

    /// To be sent once everything that is due was done.
    fn report(&mut self, ward: Number, what: Happened) -> io::Result<()> {
        self.control.report(&Report { ward, what })
    }

    // ----- the supervisor -------------------------------------------------------------------

    /// Its end, by the kernel's word, is dealt with like any other.
    fn end_a_supervisor_that_keeps_a_lock(&mut self) {
        let Some(database) = self.lock.kept(clock::now(), self.held.until()) else { return };
        if pidfd_send_signal(&self.supervisor, Signal::KILL).is_ok() {
            output::complain(&format!(
                "tenure: the supervisor (process {}) was stopped past its lease while it held the write lock of \
                 `{}`: killed, so that others can renew and be elected",
                self.hello.supervisor,
                database.display()
            ));
        }
    }

    // ----- keepers --------------------------------------------------------------------------

    fn hear_keepers(&mut self) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match self.words.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => self.heard.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            let Word { ward, said } = serde_json::from_slice(&line)?;
            self.heed(ward, said)?;
        }
        Ok(())
    }

    fn heed(&mut self, number: Number, said: Said) -> io::Result<()> {
        let Some(ward) = self.wards.get_mut(&number) else { return Ok(()) };
        match said {
            Said::Started(pid) => {
                let Some(pid) = Pid::from_raw(pid) else { return Ok(()) };
                ward.program = Some(pid);
                if ward.kill_at.is_some() {
                    // It was told to stop before it was there to hear it.
                    ward.tell(&Snapshot::take()?);
                }
                self.report_start(number, pid)
            }
            Said::Ended(end) => {
                ward.end = Some(end);
                Ok(())
            }
            // Nothing was started, so there is nothing to guard.
            Said::Refused(errno) => {
                self.wards.remove(&number);
                self.report(number, Happened::Refused { errno })
            }
            Said::TooLate => {
                self.wards.remove(&number);
                self.report(number, Happened::TooLate)
            }
        }
    }

    // ----- the wards ------------------------------------------------------------------------

    /// Does whatever is due: the end of the session, of a grace, of programs, of their trees.
    fn look_after_the_wards(&mut self) -> io::Result<()> {
        let now = clock::now();
        // A program that ended before its time was over, ended by itself. What a keeper had to say, it said
        // before it left.
        let alone = self.reap()?;
        self.hear_keepers()?;
        if now >= self.held.until() {
            self.stop(|_| true, self.held.until() + self.hello.patience)?;
            for ward in self.wards.values_mut().filter(|ward| ward.end.is_none()) {
                ward.lapsed = true;
            }
        }
        self.let_go(alone)?;
        let left_behind = |ward: &Ward| ward.end.is_some() && ward.kill_at.is_none();
        let left_behind: Vec<Number> =
            self.wards.iter().filter(|(_, ward)| left_behind(ward)).map(|(number, _)| *number).collect();
        self.stop(|number| left_behind.contains(&number), now + self.hello.grace)?;
        self.kill_what_is_due(now)
    }

    /// Reports those of whom nothing is left.
    fn let_go(&mut self, alone: bool) -> io::Result<()> {
        self.spilled |= self.wards.values().any(Ward::is_spilled);
        let spilled = self.spilled;
        let gone = |ward: &Ward| if spilled { alone } else { ward.is_gone(alone) };
        for (number, ward) in self.wards.extract_if(.., |_, ward| gone(ward)).collect::<Vec<_>>() {
            let end = ward.end.unwrap_or(End::Signal(signal_hook::consts::SIGKILL));
            self.report(number, Happened::Ended { end, lapsed: ward.lapsed })?;
        }
        self.spilled &= !alone;
        Ok(())
    }

    fn kill_what_is_due(&mut self, now: Instant) -> io::Result<()> {
        let due = |ward: &Ward| ward.kill_at.is_some_and(|at| at <= now);
        if !self.spilled && !self.wards.values().any(due) {
            return Ok(());
        }
        let all = Snapshot::take()?;
        let mut immune = Vec::new();
        for (number, ward) in self.wards.iter_mut().filter(|(_, ward)| due(ward)) {
            let pids = ward.kill(&all);
            if !pids.is_empty() && !std::mem::replace(&mut ward.told_of_immune, true) {
                immune.push((*number, pids));
            }
        }
        if self.spilled {
            all.signal(getpid(), None, Signal::KILL);
        }
        for (number, pids) in immune {
            self.report(number, Happened::Immune { pids })?;
        }
        Ok(())
    }

    /// Takes note of everybody who has ended. True if nobody is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(ward) = self.wards.values_mut().find(|ward| ward.child == pid) {
                        ward.child_ended(End::of(status));
                    }
                }
                Ok(None) => return Ok(false),
                Err(rustix::io::Errno::CHILD) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills all trees, and returns when nothing of them is left.
    fn kill_the_rest(&mut self) {
        while let Ok(false) = self.reap() {
            // Whatever fails here is tried again, until the kernel says that nobody is left.
            if let Ok(all) = Snapshot::take() {
                self.wards.values().for_each(|ward| _ = ward.kill(&all));
                all.signal(getpid(), None, Signal::KILL);
            }
            std::thread::sleep(AGAIN);
        }
        self.wards.clear();
    }

    fn set_timer(&self) -> io::Result<()> {
        let now = clock::now();
        let until = self.held.until();
        let wakes = self.wards.values().map(|ward| match ward.kill_at {
            Some(at) if at <= now => now + AGAIN,
            Some(at) if until > now => at.min(until),
            Some(at) => at,
            None => until,
        });
        let wake = wakes.chain(self.spilled.then(|| now + AGAIN)).chain(self.lock.wake(until)).min();
        self.timer.set(wake)
    }
}

/// What a dead supervisor held, by what it had told and nobody has read yet. It says nothing more, so this ends.
fn last_word(control: &mut Control, mut held: Tenancy) -> Tenancy {
    while let Ok(Some(order)) = control.next() {
        match order {
            Order::Held(told) => held = told,
            Order::Start(start) => held = start.held,
            Order::Hello(_) | Order::Signal(_) | Order::Stop { .. } | Order::Dismissed => {}
        }
    }
    held
}
