//! What the system counts of a thread.

use std::time::Duration;

use nix::sys::resource::Usage;
use nix::sys::time::TimeValLike;

/// What a thread has used since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    /// How often it waited.
    pub(crate) waits: u64,
    pub(crate) cpu_time: Duration,
}

impl ThreadUsage {
    /// Returns the usage of the calling thread; none where the system does not count by thread.
    pub(crate) fn now() -> Option<Self> {
        let usage = usage().ok()?;
        let cpu_us = (usage.user_time() + usage.system_time()).num_microseconds();
        Some(Self {
            waits: u64::try_from(usage.voluntary_context_switches()).ok()?,
            cpu_time: Duration::from_micros(u64::try_from(cpu_us).ok()?),
        })
    }
}

#[cfg(target_os = "linux")]
fn usage() -> nix::Result<Usage> {
    nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD)
}

#[cfg(not(target_os = "linux"))]
fn usage() -> nix::Result<Usage> {
    Err(nix::Error::ENOSYS)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_wait_and_work_are_seen_in_what_the_thread_has_used() {
        let before = ThreadUsage::now().expect("Linux says it");
        std::thread::sleep(Duration::from_millis(1));
        let began = Instant::now();
        while ThreadUsage::now().is_some_and(|now| now.cpu_time == before.cpu_time) {
            assert!(began.elapsed() < Duration::from_secs(60), "no time is counted");
        }
        assert!(ThreadUsage::now().expect("Linux says it").waits > before.waits);
    }
}
