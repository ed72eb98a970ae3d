//! The core's turn, and what runs it: after the tasks that were ready, when another thread has
//! something for the core, and at its deadlines.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_broker::Effect;
use quelea_model::{QueueName, Timestamp, VhostName};
use quelea_store::{LoadError, LoadFault, StoreState};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::sleep_until;

use crate::clock::Clock;
use crate::coalescing::PAUSE;
use crate::core::{Core, SharedCore};
use crate::handle::CALLS_WAITING_MAX;
use crate::stop::Stopped;
use crate::thread_usage::ThreadUsage;

/// A turn delivers for at least this long if there is that much to deliver, and for as long as the
/// input before it took, if that was longer. So publishers, however many, take no more than half of
/// the core from the consumers, and feel it by TCP; and nobody waits much longer than for the input.
const DELIVERY_TIME_MIN: Duration = Duration::from_millis(1);

/// Runs turns until the node has stopped.
pub(crate) async fn run(core: SharedCore, wake: Arc<Notify>, clock: Clock) -> Stopped {
    let mut timer = pin!(sleep_until(Instant::now().into()));
    let mut armed = None;
    loop {
        let (next, deadline, stopped) =
            core.with(|core| (core.turn(), core.deadline(), core.stop.done()));
        if let Some(stopped) = stopped {
            return stopped;
        }
        match next {
            Next::AtOnce => {
                yield_now().await;
                continue;
            }
            Next::AfterPause => {
                let began = Instant::now();
                // Of the whole thread: what comes meanwhile costs its clients no wake-up either.
                std::thread::sleep(PAUSE);
                core.with(|core| core.coalescing.count_pause(began.elapsed()));
            }
            Next::WhenWoken => {}
        }
        if let Some(at) = deadline
            && armed != deadline
        {
            timer.as_mut().reset(clock.instant(at).into());
        }
        armed = deadline;
        tokio::select! {
            biased;
            () = wake.notified() => {}
            () = &mut timer, if deadline.is_some() => armed = None,
        }
    }
}

/// When the next turn is, if no deadline comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// There is more to do.
    AtOnce,
    /// Input keeps coming in small pieces.
    AfterPause,
    WhenWoken,
}

impl Core {
    /// Runs one turn: input, broker, jobs, output. What connections read was given to the broker
    /// before, by their tasks (`connection_task.rs`).
    fn turn(&mut self) -> Next {
        let started = Instant::now();
        let input_time = self.schedule.begin_turn(started);
        let mut more = self.take_input();
        let read = Instant::now();
        more |= self.run_broker(input_time + (read - started), read);
        more |= self.connections.any_dirty();
        more |= self.stop.advance(
            &mut self.broker,
            &mut self.connections,
            self.log.is_idle(),
            more,
            self.schedule.now(),
        );
        self.ask_names();
        self.audit.note(self.broker.take_topology_changes());
        self.submit_jobs();
        let ended = Instant::now();
        let elapsed = input_time + (ended - started);
        let steps = self.step_budget.measure(self.broker.work_done(), elapsed);
        self.broker.set_steps_per_turn(steps);
        self.turn_times.record(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX), 1);
        self.schedule.end_turn();
        let pauses = self.coalescing.end_turn(ended, ThreadUsage::now);
        match (more, pauses) {
            (true, _) => Next::AtOnce,
            (false, true) => Next::AfterPause,
            (false, false) => Next::WhenWoken,
        }
    }

    /// Returns when the loop has to run a turn although nothing happens.
    fn deadline(&mut self) -> Option<Timestamp> {
        let deadlines = [
            self.broker.deadline(),
            self.broker.store_mut().deadline(),
            self.connections.deadline(),
            self.stop.deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Takes what came from other threads, and timers that are due. Returns whether calls may be
    /// left: those of one turn have its steps together.
    fn take_input(&mut self) -> bool {
        while let Some(done) = self.log.poll_done() {
            self.broker.store_mut().complete(done);
        }
        let steps_end = self.broker.work_done() + self.broker.steps_per_turn();
        let mut calls_left = false;
        for _ in 0..CALLS_WAITING_MAX {
            calls_left = self.broker.work_done() >= steps_end;
            if calls_left {
                break;
            }
            let Ok(call) = self.calls.try_recv() else { break };
            call(self);
        }
        let now = self.now();
        while let Some(result) = self.logins.poll_result() {
            self.connections.login_checked(result, &mut self.broker, &self.logins, now);
        }
        self.connections.fire_timers(&mut self.broker, now);
        self.publish_epoch();
        calls_left
    }

    /// Runs the broker and writes what comes of it, again and again while there is more and time for
    /// it, by when it was written last. Returns whether there is more.
    fn run_broker(&mut self, input_time: Duration, started: Instant) -> bool {
        let time = input_time.max(DELIVERY_TIME_MIN);
        let now = self.now();
        loop {
            let more = self.broker.run(now);
            // The disk begins before the sockets are written.
            self.submit_jobs();
            let mut acted = self.apply_effects();
            acted |= self.keep_promises();
            let accepts = self.broker.accepts_publish(self.connections.awaited_bytes());
            self.connections.resume_stalled(accepts, self.broker.names_freed());
            // What was written makes room for more, and a connection that broke gives back what it
            // held.
            let progress = self.promises.progress();
            let acted_at = Instant::now();
            let times = (now, self.schedule.time_at(acted_at));
            let changed =
                self.connections.write_output(&mut self.broker, &self.logins, progress, times);
            if !(more || acted || changed) {
                return false;
            }
            if acted_at - started >= time {
                return true;
            }
        }
    }

    fn submit_jobs(&mut self) {
        let now = self.now();
        let store = self.broker.store_mut();
        self.log.submit(|| store.poll_job(now));
    }

    /// Hands the broker's effects to the connections that they are for. Returns whether there were any.
    fn apply_effects(&mut self) -> bool {
        let now = self.now();
        let mut any = false;
        while let Some(effect) = self.broker.poll_effect() {
            any = true;
            let connection = match &effect {
                Effect::Deliver { connection, .. }
                | Effect::Got { connection, .. }
                | Effect::Browsed { connection, .. }
                | Effect::GotEmpty { connection, .. }
                | Effect::ConsumerCancelled { connection, .. }
                | Effect::PublisherResumed { connection }
                | Effect::CloseConnection { connection, .. } => *connection,
                Effect::PublishersBlocked { .. } | Effect::PublishersUnblocked => {
                    self.connections.broadcast(&mut self.broker, &effect, now);
                    continue;
                }
                Effect::Received { .. } => {
                    self.answer_receive(effect);
                    continue;
                }
                Effect::MessagesUnreadable { vhost, queue, error } => {
                    log_unreadable(vhost, queue, error);
                    continue;
                }
                Effect::DefinitionLost { problem } => {
                    tracing::error!("started without a lost definition: {problem}");
                    continue;
                }
            };
            match self.connections.slot(connection) {
                Some(slot) => self.connections.apply(slot, &mut self.broker, effect, now),
                None => self.internal.apply(&mut self.broker, connection, effect, now),
            }
        }
        any
    }

    /// Releases confirms, and answers that promised durability, if the store came further. Returns
    /// whether anything was done that the broker may have to act on.
    fn keep_promises(&mut self) -> bool {
        let progress = self.broker.progress();
        let Some(reached) = self.promises.advance(progress) else {
            if !self.promises.is_empty()
                && matches!(self.broker.store_mut().state(), StoreState::Failed { .. })
            {
                self.promises.break_all();
            }
            return false;
        };
        self.connections.store_progressed(progress, self.schedule.time());
        let any = !reached.is_empty();
        for promise in reached {
            promise(self);
        }
        any
    }
}

/// Confirmed messages that the log does not give back: whoever runs the broker has to know which.
fn log_unreadable(vhost: &VhostName, queue: &QueueName, error: &LoadError) {
    let LoadError { missed, fault, file, location, problem } = error;
    let fault = match fault {
        LoadFault::Io => "the disk refuses to read it",
        LoadFault::Damage => "the log is damaged",
    };
    tracing::error!(
        vhost = vhost.as_str(),
        queue = queue.as_str(),
        file,
        segment = location.segment,
        offset = location.offset,
        problem,
        "{missed} cannot be delivered: {fault}",
    );
}
