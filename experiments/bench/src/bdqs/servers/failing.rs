//! A server that fails and comes back, again and again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use crate::bdqs::error::BdqsError;
use crate::bdqs::site::{FrontEnd, Nodes};
use crate::clock::{SECOND_NS, now_ns, seconds_between, seconds_to_ns};

/// How often the end is looked for.
const STEP: Duration = Duration::from_millis(10);
/// A front-end does not start while most nodes are gone: it is tried again for so long.
const START_S: u64 = 180;

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Both processes are stopped, and go on later: what a machine looks like that hangs or is cut off.
    Freeze,
    /// Both are killed, and started again.
    Kill,
    /// The front-end is killed, and started again.
    KillFrontEnd,
}

/// A front-end, and the node beside it.
#[derive(Debug)]
pub(super) struct Server<'a> {
    pub front_end: &'a mut FrontEnd,
    /// Of the site, if the node fails too.
    pub nodes: Option<&'a Nodes>,
    /// From 1.
    pub number: u32,
    pub fault: Fault,
}

/// Mean times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    /// Infinite: never.
    pub mttf_s: f64,
    pub mttr_s: f64,
}

/// What the run and the servers tell each other.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The first failure may come.
    pub begun: AtomicBool,
    ended: AtomicBool,
    /// Servers that fail, or have failed and are not back.
    active: AtomicU32,
}

/// How often servers failed, and for how long they were away.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Suffered {
    pub failures: u64,
    pub down_s: f64,
}

/// Lets a server fail until the end; then it is back.
pub(super) fn fail(
    mut server: Server<'_>,
    rhythm: Rhythm,
    mut rng: Rng,
    signals: &Signals,
) -> Result<Suffered, BdqsError> {
    let mut suffered = Suffered::default();
    while !signals.begun.load(Ordering::Acquire) && !signals.has_ended() {
        thread::sleep(STEP);
    }
    while signals.pass(exponential(&mut rng, rhythm.mttf_s)) {
        signals.active.fetch_add(1, Ordering::SeqCst);
        // Who waits for the end has not seen this one.
        if signals.has_ended() {
            signals.active.fetch_sub(1, Ordering::SeqCst);
            break;
        }
        let begun = now_ns();
        let outcome = server.fail().and_then(|()| {
            signals.pass(exponential(&mut rng, rhythm.mttr_s));
            server.recover()
        });
        suffered.failures += 1;
        suffered.down_s += seconds_between(begun, now_ns());
        signals.active.fetch_sub(1, Ordering::SeqCst);
        outcome?;
    }
    Ok(suffered)
}

/// Draws a time from an exponential distribution that has this mean.
fn exponential(rng: &mut Rng, mean_s: f64) -> f64 {
    // Neither the logarithm of 0, nor none of something infinite.
    -(1.0 - rng.f64()).ln().min(-f64::EPSILON) * mean_s
}

impl Server<'_> {
    fn fail(&mut self) -> Result<(), BdqsError> {
        match self.fault {
            Fault::Freeze => self.front_end.freeze(),
            Fault::Kill | Fault::KillFrontEnd => self.front_end.kill(),
        }
        match (self.fault, self.nodes) {
            (Fault::Freeze, Some(nodes)) => nodes.act("pause", self.number),
            (Fault::Kill, Some(nodes)) => nodes.act("kill", self.number),
            _ => Ok(()),
        }
    }

    fn recover(&mut self) -> Result<(), BdqsError> {
        match (self.fault, self.nodes) {
            (Fault::Freeze, Some(nodes)) => nodes.act("resume", self.number)?,
            (Fault::Kill, Some(nodes)) => nodes.act("restart", self.number)?,
            _ => {}
        }
        if self.fault == Fault::Freeze {
            self.front_end.thaw();
            return Ok(());
        }
        let deadline = now_ns() + START_S * SECOND_NS;
        while let Err(error) = self.front_end.start_again() {
            if now_ns() > deadline {
                return Err(error);
            }
            thread::sleep(STEP * 50);
        }
        Ok(())
    }
}

impl Signals {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Lets time pass; false if the end came before.
    fn pass(&self, seconds: f64) -> bool {
        let until = now_ns().saturating_add(seconds_to_ns(seconds));
        while now_ns() < until && !self.has_ended() {
            thread::sleep(STEP);
        }
        !self.has_ended()
    }

    /// No server fails any more, and all are back.
    pub(super) fn end_and_wait(&self) {
        self.ended.store(true, Ordering::SeqCst);
        while self.active.load(Ordering::SeqCst) > 0 {
            thread::sleep(STEP);
        }
    }
}

impl Suffered {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { failures: self.failures + other.failures, down_s: self.down_s + other.down_s }
    }

    /// Returns the mean of the seconds that servers were down; no number if none failed.
    pub(super) fn mean_down_s(&self) -> f64 {
        self.down_s / self.failures as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_mean_that_is_asked_for() {
        let mut rng = Rng::with_seed(5);
        let sum: f64 = (0..100_000).map(|_| exponential(&mut rng, 10.0)).sum();
        assert!((9.8..10.2).contains(&(sum / 1e5)), "{sum}");
        assert!(exponential(&mut rng, 0.0) == 0.0);
        let never = seconds_to_ns(exponential(&mut rng, f64::INFINITY));
        assert!(never > 1_000 * SECOND_NS);
    }

    #[test]
    fn what_servers_suffered_is_summed() {
        let one = Suffered { failures: 2, down_s: 5.0 };
        let sum = one.plus(Suffered { failures: 3, down_s: 10.0 });
        assert_eq!(sum, Suffered { failures: 5, down_s: 15.0 });
        assert!((sum.mean_down_s() - 3.0).abs() < 1e-12);
        assert!(!Suffered::default().mean_down_s().is_finite());
    }
}
