//! CPU time of one end.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::SECOND_NS;

/// Whose time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All threads of this process: the end is alone in it.
    Process,
    /// This thread: the other end is in the same process. What the library's threads did is nobody's.
    Thread,
}

/// CPU time from `begin` on: until `end` of everything, after it only of other threads, since this one
/// then reads and prints lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    scope: Scope,
    begun_ns: u64,
    ended_ns: u64,
    thread_ended_ns: u64,
}

impl Meter {
    pub(crate) fn begin(scope: Scope) -> Self {
        let begun_ns = now(scope);
        Self { scope, begun_ns, ended_ns: begun_ns, thread_ended_ns: now(Scope::Thread) }
    }

    pub(crate) fn end(&mut self) {
        self.ended_ns = now(self.scope);
        self.thread_ended_ns = now(Scope::Thread);
    }

    /// Returns the nanoseconds of CPU time so far.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let others = match self.scope {
            Scope::Process => {
                let lines = now(Scope::Thread) - self.thread_ended_ns;
                now(Scope::Process).saturating_sub(self.ended_ns + lines)
            }
            Scope::Thread => 0,
        };
        self.ended_ns - self.begun_ns + others
    }
}

/// Returns the CPU time so far, nanoseconds.
pub(crate) fn now(scope: Scope) -> u64 {
    let clock = match scope {
        Scope::Process => ClockId::ProcessCPUTime,
        Scope::Thread => ClockId::ThreadCPUTime,
    };
    let time = clock_gettime(clock);
    // CPU times are not negative.
    time.tv_sec.cast_unsigned() * SECOND_NS + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_thread_does_after_the_end_does_not_count() {
        let mut meter = Meter::begin(Scope::Thread);
        let worked = busy(0);
        meter.end();
        let cost = meter.cpu_ns();
        assert!(worked > 0 && cost > 0);
        busy(1);
        assert_eq!(meter.cpu_ns(), cost);
    }

    fn busy(seed: u64) -> u64 {
        (0..200_000_u64).fold(seed, |sum, number| std::hint::black_box(sum ^ number.pow(2)) | 1)
    }
}
