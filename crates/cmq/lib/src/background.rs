//! The thread "cmq-io": it serves timers, and the socket while no caller does. With nothing due it
//! sleeps without limit.

use std::io;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quelea_cmq_proto::Time;

use crate::clock::until as time_until;
use crate::driver::Driver;
use crate::net::Watcher;
use crate::state::{Background, State};

/// While callers are active the thread looks so often whether they still are. It is the longest that a
/// datagram waits for it when they have turned to something else.
const TICK: Duration = Duration::from_millis(1);

/// After so long without anything to do the buffers are given back: they are cheap to make, but not
/// for every datagram.
const TRIM_AFTER: Duration = Duration::from_millis(100);

impl Background {
    /// Whether a datagram that came now would wait for it longer than a tick.
    pub(crate) fn comes_late(&self, now: Time) -> bool {
        !self.polls && self.looks_at.is_none_or(|looks_at| looks_at > now.after(TICK))
    }
}

/// What it does until it looks again.
enum Turn {
    /// Waits for the socket.
    Watch,
    /// Waits for the time only: callers serve the socket.
    Rest,
    /// Ends.
    End,
}

/// Starts it.
pub(crate) fn start(driver: &Arc<Driver>) -> io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(driver);
    let handle = thread::Builder::new()
        .name("cmq-io".to_owned())
        // What it calls is shallow.
        .stack_size(256 << 10)
        .spawn(move || run(&shared))?;
    // Nobody else sets it.
    let _ = driver.background.set(handle.thread().clone());
    Ok(handle)
}

fn run(driver: &Driver) {
    let (mut seen, mut keeps_buffers) = (0, true);
    loop {
        let mut state = driver.lock();
        let now = driver.clock.now();
        state.background.polls = false;
        // While it runs nobody needs to call it: it sees what they did before it sleeps.
        state.background.looks_at = Some(Time::ZERO);
        if state.proto.next_deadline().is_some_and(|due| due <= now) {
            state.proto.on_timer(now);
            state.deliver(now);
        }
        state.ring_alarms(now);
        if state.proto.has_transmit() || !state.called.is_empty() || state.leader_called {
            driver.unlock(state);
            continue;
        }
        let turn = next_turn(&mut state, &mut seen, now);
        let due = state.background.looks_at;
        let trims = matches!(turn, Turn::Watch) && due.is_none() && keeps_buffers;
        if trims {
            state.background.looks_at = Some(now.after(TRIM_AFTER));
        }
        let within = time_until(state.background.looks_at, now);
        drop(state);
        match turn {
            Turn::End => return,
            Turn::Rest => {
                match within {
                    Some(within) => thread::park_timeout(within),
                    None => thread::park(),
                }
                keeps_buffers = true;
            }
            Turn::Watch => driver.net.wait(Watcher::Background, within),
        }
        let led = driver.lock().watcher == Some(Watcher::Caller);
        if !led && driver.try_receive() {
            keeps_buffers = true;
        } else if trims && !led {
            driver.trim();
            keeps_buffers = false;
        }
    }
}

fn next_turn(state: &mut State, seen: &mut u64, now: Time) -> Turn {
    if state.closed || state.closing.is_some_and(|end| end <= now || state.proto.all_settled()) {
        return Turn::End;
    }
    let due = [state.next_deadline(), state.closing].into_iter().flatten().min();
    let busy = mem::replace(seen, state.background.busy) != state.background.busy;
    let led = state.watcher == Some(Watcher::Caller);
    state.background.looks_at = due;
    if busy && state.tasks == 0 {
        if !led {
            state.watcher = None;
        }
        let tick = now.after(TICK);
        state.background.looks_at = Some(due.map_or(tick, |due| due.min(tick)));
        return Turn::Rest;
    }
    if led {
        return Turn::Rest;
    }
    state.watcher = Some(Watcher::Background);
    state.background.polls = true;
    Turn::Watch
}
