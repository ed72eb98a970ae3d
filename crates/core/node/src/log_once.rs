//! A fault that lasts is logged once.

/// What was logged last, so that a fault that lasts is logged when it begins, and not at each attempt.
#[derive(Debug, Default)]
pub struct LogOnce(Option<String>);

impl LogOnce {
    /// Returns whether this is to be logged: it is not what was logged last.
    pub fn is_new(&mut self, reason: &str) -> bool {
        if self.0.as_deref() == Some(reason) {
            return false;
        }
        self.0 = Some(reason.to_owned());
        true
    }

    /// Notes that it goes on; returns whether there was a fault that was logged.
    pub fn resolved(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_logged_once_and_again_after_it_was_resolved() {
        let mut log = LogOnce::default();
        assert!(!log.resolved());
        assert!(log.is_new("no queue"));
        assert!(!log.is_new("no queue"));
        assert!(log.is_new("no exchange"));
        assert!(log.resolved());
        assert!(!log.resolved());
        assert!(log.is_new("no exchange"));
    }
}
