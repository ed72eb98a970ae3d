//! M/M/k: the mean response time of k servers of one queue, to set beside what was measured (BDQS §V-B.2).

/// k servers, each of which serves so many a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Servers {
    pub count: u32,
    pub each_per_s: f64,
}

impl Servers {
    /// Returns servers that have this response time when nothing waits, and this rate together.
    pub(crate) fn fitting(lightest_s: f64, heaviest_per_s: f64) -> Self {
        let count = (lightest_s * heaviest_per_s).round().clamp(1.0, 10_000.0);
        Self { count: count as u32, each_per_s: heaviest_per_s / count }
    }

    /// Returns the mean time from arrival to the end of service in seconds; `None` at rates that
    /// they cannot serve.
    pub(crate) fn response_s(self, per_s: f64) -> Option<f64> {
        let spare_per_s = f64::from(self.count) * self.each_per_s - per_s;
        (spare_per_s > 0.0)
            .then(|| 1.0 / self.each_per_s + self.waits(per_s / self.each_per_s) / spare_per_s)
    }

    /// Returns Erlang's C, by his B: the probability of having to wait when so many servers are
    /// asked for on average.
    fn waits(self, load: f64) -> f64 {
        let mut blocked = 1.0;
        for servers in 1..=self.count {
            blocked = load * blocked / (f64::from(servers) + load * blocked);
        }
        let utilisation = load / f64::from(self.count);
        blocked / (1.0 - utilisation * (1.0 - blocked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_is_the_textbooks() {
        let one = Servers { count: 1, each_per_s: 10.0 };
        assert!((one.response_s(5.0).unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(one.response_s(10.0), None);
    }

    #[test]
    fn of_two_servers_half_loaded_a_third_wait() {
        // Erlang's C with a = 1, c = 2 is 1/3.
        let two = Servers { count: 2, each_per_s: 1.0 };
        assert!((two.waits(1.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((two.response_s(1.0).unwrap() - (1.0 + 1.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn fitting_servers_have_the_rate_and_the_lightest_time() {
        let fitting = Servers::fitting(0.004, 1_000.0);
        assert_eq!(fitting, Servers { count: 4, each_per_s: 250.0 });
        assert_eq!(Servers::fitting(0.0, 100.0).count, 1);
    }
}
