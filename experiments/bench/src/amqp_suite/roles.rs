//! The coordinator's end of its conversations: starts roles or waits for them, orders, listens.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::args::{AmqpSuiteArgs, Experiment, Role};
use super::case::Case;
use super::conversation::keep_alive;
use super::error::SuiteError;
use super::network::Links;
use super::protocol::{Order, Word, read_line, write_line};
use crate::clock::{SECOND_NS, now_ns};
use crate::interrupt::Interrupt;

/// How long the last word of a role is waited for that takes no order any more.
const LAST_WORD: Duration = Duration::from_secs(5);

/// How often an interrupt and the time are looked at.
const STEP: Duration = Duration::from_millis(50);
/// How long a process may take to exit after the order.
const QUIT_NS: u64 = 5 * SECOND_NS;
/// Words that were not listened to.
const WORDS_MAX: usize = 1_024;
/// How long who connects may take to say who it is.
const HELLO_S: u64 = 10;

/// All roles of a run.
pub(crate) struct Roles {
    publisher: Handle,
    consumer: Handle,
    relay: Option<Handle>,
    words: Receiver<(Role, Option<Word>)>,
    stall_s: u64,
    moved_ns: u64,
    /// Messages sent and received in this round, as far as the roles have reported.
    counts: (u64, u64),
}

struct Handle {
    out: Box<dyn Write>,
    child: Option<Child>,
    /// The number of its machine's start.
    machine: String,
}

impl Roles {
    /// Starts publisher and consumer, and the relay if a case needs it; or waits for those that were started elsewhere.
    pub(crate) fn start(
        args: &AmqpSuiteArgs,
        cases: &[Case],
        links: Option<&Links>,
        interrupt: &Interrupt,
    ) -> Result<Self, SuiteError> {
        let (sender, words) = sync_channel(WORDS_MAX);
        let (publisher, consumer) = match &args.listen {
            Some(address) => await_both(address, &sender, interrupt)?,
            None => {
                (spawn(Role::Publisher, links, &sender)?, spawn(Role::Consumer, links, &sender)?)
            }
        };
        let has_baseline = cases.iter().any(|case| case.experiment == Experiment::Baseline);
        let relay = has_baseline.then(|| spawn(Role::Relay, None, &sender)).transpose()?;
        let (stall_s, moved_ns, counts) = (args.stall_s, now_ns(), (0, 0));
        let mut roles = Self { publisher, consumer, relay, words, stall_s, moved_ns, counts };
        // Those that were awaited have said it already.
        let handles = [Some(&roles.publisher), Some(&roles.consumer), roles.relay.as_ref()];
        let silent = handles.into_iter().flatten().filter(|handle| handle.child.is_some()).count();
        for _ in 0..silent {
            let (role, word) = roles.hear(interrupt)?;
            let Word::Hello { machine, .. } = word else { return Err(unexpected(role, &word)) };
            if let Some(handle) = roles.handle(role) {
                handle.machine = machine;
            }
        }
        Ok(roles)
    }

    /// Returns whether publisher and consumer have one clock.
    pub(crate) fn share_a_clock(&self) -> bool {
        !self.publisher.machine.is_empty() && self.publisher.machine == self.consumer.machine
    }

    /// Returns whether they were started elsewhere, with the broker's address.
    pub(crate) const fn are_elsewhere(&self) -> bool {
        self.publisher.child.is_none()
    }

    pub(crate) fn relay_pid(&self) -> Option<u32> {
        self.relay.as_ref()?.child.as_ref().map(Child::id)
    }

    pub(crate) fn order(&mut self, role: Role, order: &Order) -> Result<(), SuiteError> {
        // Nothing was owed before: however long that was, it is no stall.
        self.moved_ns = now_ns();
        let handle = self.handle(role).ok_or(SuiteError::Ended { role })?;
        if write_line(&mut handle.out, order).is_ok() {
            return Ok(());
        }
        // What it said last may still be on its way, with its end behind it.
        Err(loop {
            match self.words.recv_timeout(LAST_WORD) {
                Ok((role, Some(Word::Failed { why }))) => break SuiteError::Role { role, why },
                Ok((of, None)) if of == role => break self.reason_of_end(role),
                Ok(_) => {}
                Err(_) => break SuiteError::Ended { role },
            }
        })
    }

    /// A new case, or round: what moved before does not count.
    pub(crate) fn reset_counts(&mut self) {
        self.counts = (0, 0);
    }

    /// Waits for what a role says next, but for how many messages moved, and returns it.
    ///
    /// # Errors
    /// [`SuiteError`]: one failed or ended, nothing moves any more, or the user wants the end.
    pub(crate) fn hear(&mut self, interrupt: &Interrupt) -> Result<(Role, Word), SuiteError> {
        loop {
            match self.words.recv_timeout(STEP) {
                Ok((role, None)) => return Err(self.reason_of_end(role)),
                Ok((role, Some(Word::Failed { why }))) => {
                    return Err(SuiteError::Role { role, why });
                }
                Ok((role, Some(Word::Moved { messages }))) => self.note_moved(role, messages),
                Ok((role, Some(word))) => {
                    self.moved_ns = now_ns();
                    return Ok((role, word));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(SuiteError::Ended { role: Role::Publisher });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interrupt.is_set() {
                return Err(SuiteError::Interrupted);
            }
            if self.has_stalled(now_ns()) {
                let (seconds, (sent, received)) = (self.stall_s, self.counts);
                return Err(SuiteError::Stalled { seconds, sent, received });
            }
        }
    }

    /// Waits for the next word, which has to be this role's, and returns it.
    pub(crate) fn hear_from(
        &mut self,
        role: Role,
        interrupt: &Interrupt,
    ) -> Result<Word, SuiteError> {
        let (from, word) = self.hear(interrupt)?;
        if from == role { Ok(word) } else { Err(unexpected(from, &word)) }
    }

    /// Waits until a role has carried out its order.
    pub(crate) fn await_ready(
        &mut self,
        role: Role,
        interrupt: &Interrupt,
    ) -> Result<(), SuiteError> {
        match self.hear_from(role, interrupt)? {
            Word::Ready => Ok(()),
            word => Err(unexpected(role, &word)),
        }
    }

    /// Waits until both have carried out what they were ordered to.
    pub(crate) fn both_ready(&mut self, interrupt: &Interrupt) -> Result<(), SuiteError> {
        for _ in 0..2 {
            let (role, word) = self.hear(interrupt)?;
            if !matches!(word, Word::Ready) {
                return Err(unexpected(role, &word));
            }
        }
        Ok(())
    }

    fn has_stalled(&self, now_ns: u64) -> bool {
        now_ns > self.moved_ns + self.stall_s * SECOND_NS
    }

    fn note_moved(&mut self, role: Role, messages: u64) {
        let count = if role == Role::Publisher { &mut self.counts.0 } else { &mut self.counts.1 };
        if *count != messages {
            *count = messages;
            self.moved_ns = now_ns();
        }
    }

    /// Returns why a role has ended. One that ends has most often said why; a broker that is gone
    /// ends both.
    fn reason_of_end(&self, role: Role) -> SuiteError {
        let said = self.words.try_iter().find_map(|(role, word)| match word {
            Some(Word::Failed { why }) => Some(SuiteError::Role { role, why }),
            _ => None,
        });
        said.unwrap_or(SuiteError::Ended { role })
    }

    fn handle(&mut self, role: Role) -> Option<&mut Handle> {
        match role {
            Role::Publisher => Some(&mut self.publisher),
            Role::Consumer => Some(&mut self.consumer),
            Role::Relay => self.relay.as_mut(),
            Role::Coordinator => None,
        }
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        let handles = [Some(&mut self.publisher), Some(&mut self.consumer), self.relay.as_mut()];
        let mut handles: Vec<_> = handles.into_iter().flatten().collect();
        for handle in &mut handles {
            // One that has ended needs no order.
            let _ = write_line(&mut handle.out, &Order::Quit);
        }
        let deadline = now_ns() + QUIT_NS;
        for child in handles.iter_mut().filter_map(|handle| handle.child.as_mut()) {
            while now_ns() < deadline && matches!(child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(5));
            }
            // Both do nothing to one that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts this program in another role, in the role's namespace if it has one.
fn spawn(
    role: Role,
    links: Option<&Links>,
    words: &SyncSender<(Role, Option<Word>)>,
) -> Result<Handle, SuiteError> {
    let failed = |why: String| SuiteError::Start { role, why };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = match links.and_then(|links| links.namespace(role)) {
        Some(namespace) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(["amqp-suite", "--role", role.name()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // Ctrl-C is for the coordinator, which ends it when the report is made.
    let mut child = command.process_group(0).spawn().map_err(|error| failed(error.to_string()))?;
    let (Some(input), Some(out)) = (child.stdout.take(), child.stdin.take()) else {
        return Err(failed("it has no output".to_owned()));
    };
    listen(role, input, words.clone()).map_err(|error| failed(error.to_string()))?;
    Ok(Handle { out: Box::new(out), child: Some(child), machine: String::new() })
}

/// Takes what a role says, in a thread of its own.
fn listen(
    role: Role,
    input: impl Read + Send + 'static,
    words: SyncSender<(Role, Option<Word>)>,
) -> std::io::Result<()> {
    let read = move || {
        let mut input = BufReader::new(input);
        while let Ok(Some(word)) = read_line(&mut input) {
            if words.send((role, Some(word))).is_err() {
                return;
            }
        }
        let _ = words.send((role, None));
    };
    thread::Builder::new().name(format!("suite-{}", role.name())).spawn(read).map(|_| ())
}

/// Waits for a publisher and a consumer that were started elsewhere, and returns them.
fn await_both(
    address: &str,
    words: &SyncSender<(Role, Option<Word>)>,
    interrupt: &Interrupt,
) -> Result<(Handle, Handle), SuiteError> {
    let failed = |error: std::io::Error| SuiteError::Start {
        role: Role::Coordinator,
        why: format!("--listen {address}: {error}"),
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    // With port 0 nobody else knows it.
    eprintln!("waits for a publisher and a consumer at {}", listener.local_addr().map_err(failed)?);
    let (mut publisher, mut consumer) = (None, None);
    loop {
        if interrupt.is_set() {
            return Err(SuiteError::Interrupted);
        }
        let Ok((stream, peer)) = listener.accept() else {
            thread::sleep(STEP);
            continue;
        };
        let Some((role, version, machine)) = greeted(&stream) else {
            eprintln!("{peer} is no role of this suite");
            continue;
        };
        let place = match role {
            Role::Consumer => &mut consumer,
            _ => &mut publisher,
        };
        if let Some(why) = why_not(role, &version, place.is_some()) {
            eprintln!("the {} at {peer} is not taken: {why}", role.name());
            // It may be gone by now.
            let _ = write_line(&mut &stream, &Order::TurnAway { why });
            continue;
        }
        stream.set_read_timeout(None).map_err(failed)?;
        keep_alive(&stream).map_err(failed)?;
        let input = stream.try_clone().map_err(failed)?;
        listen(role, input, words.clone()).map_err(failed)?;
        *place = Some(Handle { out: Box::new(stream), child: None, machine });
        (publisher, consumer) = match (publisher, consumer) {
            (Some(publisher), Some(consumer)) => return Ok((publisher, consumer)),
            unfinished => unfinished,
        };
    }
}

/// Reads the greeting of whoever has connected. Returns its role, version and machine; none if it
/// does not say them.
fn greeted(stream: &TcpStream) -> Option<(Role, String, String)> {
    stream.set_nonblocking(false).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(HELLO_S))).ok()?;
    // A larger buffer could take what follows too.
    let mut input = BufReader::with_capacity(1, stream);
    match read_line(&mut input) {
        Ok(Some(Word::Hello { role, version, machine })) => Some((role, version, machine)),
        _ => None,
    }
}

/// Returns the reason why a role that has connected is not taken.
fn why_not(role: Role, version: &str, has_one: bool) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        return Some(format!("it is of version {version}, the coordinator of version {own}"));
    }
    match role {
        Role::Publisher | Role::Consumer if !has_one => None,
        Role::Publisher | Role::Consumer => Some(format!("there is a {} already", role.name())),
        Role::Coordinator | Role::Relay => {
            Some("only a publisher and a consumer can be elsewhere".to_owned())
        }
    }
}

pub(super) fn unexpected(role: Role, word: &Word) -> SuiteError {
    SuiteError::Role { role, why: format!("it said {word:?} where that has no place") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_an_order_is_no_stall() {
        let (sender, words) = sync_channel(1);
        let handle =
            || Handle { out: Box::new(std::io::sink()), child: None, machine: String::new() };
        let mut roles = Roles {
            publisher: handle(),
            consumer: handle(),
            relay: None,
            words,
            stall_s: 60,
            moved_ns: 0,
            counts: (1, 1),
        };
        // As if nothing had moved since the machine was started: a case may take long to declare.
        assert!(roles.has_stalled(61 * SECOND_NS));
        roles.order(Role::Consumer, &Order::EndCase).unwrap();
        assert!(roles.moved_ns > 0 && !roles.has_stalled(roles.moved_ns + 60 * SECOND_NS));
        sender.send((Role::Consumer, Some(Word::Ready))).unwrap();
        roles.await_ready(Role::Consumer, &Interrupt::default()).unwrap();
    }
}
