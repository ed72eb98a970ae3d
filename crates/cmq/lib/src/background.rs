//! The thread "cmq-io": it serves timers, and the socket while no caller does. With nothing due it
//! sleeps without limit.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quelea_cmq_proto::Time;

use crate::clock::until as time_until;
use crate::driver::Driver;
use crate::leadership::TICK;
use crate::net::Reader;
use crate::state::State;
use crate::sync::thread;

/// After so long without anything to do the buffers are freed: they are cheap to make, but not for
/// every datagram.
const TRIM_AFTER: Duration = Duration::from_millis(100);

/// What it does until it looks again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Waits for the socket.
    Read,
    /// Waits for the time only: callers serve the socket.
    Rest,
}

/// Starts it.
pub(crate) fn start(driver: &Arc<Driver>) -> io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(driver);
    thread::Builder::new()
        .name("cmq-io".to_owned())
        // What it calls is shallow.
        .stack_size(256 << 10)
        .spawn(move || {
            // Nobody else sets it, and before its first look nobody needs it.
            let _ = shared.background.set(thread::current());
            run(&shared);
        })
}

fn run(driver: &Driver) {
    let (mut seen, mut keeps_buffers) = (0, true);
    loop {
        let (mut state, now) = driver.lock_now();
        state.leadership.background.begin_turn();
        state.drive_timers(now);
        state.fire_alarms(now);
        if state.has_work() {
            driver.release_and_transmit(state);
            continue;
        }
        let Some((next, mut wakes_at)) = plan(&mut state, &mut seen, now) else { return };
        keeps_buffers |= next == Next::Rest;
        let trims = wakes_at.is_none() && keeps_buffers && next == Next::Read;
        if trims {
            wakes_at = Some(now.after(TRIM_AFTER));
        }
        state.leadership.background.end_turn(wakes_at, next == Next::Read);
        drop(state);
        let within = time_until(wakes_at, now);
        match (next, within) {
            (Next::Read, _) => driver.net.wait(Reader::Background, within),
            (Next::Rest, Some(within)) => thread::park_timeout(within),
            (Next::Rest, None) => thread::park(),
        }
        let has_leader = driver.lock().leadership.has_leader();
        if !has_leader && driver.recv_unless_busy() {
            keeps_buffers = true;
        } else if trims && !has_leader {
            driver.trim();
            keeps_buffers = false;
        }
    }
}

/// Returns what the thread does next, and when it looks again; none if it ends. `seen` is how often
/// callers had used the socket when it looked before.
fn plan(state: &mut State, seen: &mut u64, now: Time) -> Option<(Next, Option<Time>)> {
    if state.closed || state.closing.is_some_and(|end| end <= now || state.proto.all_settled()) {
        return None;
    }
    let due = [state.next_deadline(), state.closing].into_iter().flatten().min();
    let busy = state.leadership.background.was_active_since(seen);
    if busy && !state.leadership.has_tasks() {
        let tick = now.after(TICK);
        return Some((Next::Rest, Some(due.map_or(tick, |due| due.min(tick)))));
    }
    let next = if state.leadership.has_leader() { Next::Rest } else { Next::Read };
    Some((next, due))
}
