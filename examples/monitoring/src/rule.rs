//! Complex events: a threshold that several hosts of a group cross within a short time. One host that is
//! busy is no event, three at once are.

use std::collections::{HashMap, VecDeque};

use crate::sample::{Alert, Sample};

/// Hosts that are remembered; samples of further ones are not looked at.
const HOSTS_MAX: usize = 100_000;

/// What an event is.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// By metric; others are not looked at.
    pub(crate) thresholds: HashMap<String, f64>,
    /// So many hosts of a group …
    pub(crate) hosts: usize,
    /// … within so many milliseconds, by the hosts' clocks.
    pub(crate) within_ms: u64,
}

/// Looks at samples, one after the other.
#[derive(Debug)]
pub(crate) struct Watch {
    rule: Rule,
    /// By topic: whether the host was above the threshold last.
    above: HashMap<String, bool>,
    /// By metric and group: who has crossed lately, oldest first, each host once.
    crossed: HashMap<(String, String), VecDeque<Sample>>,
}

impl Watch {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, above: HashMap::new(), crossed: HashMap::new() }
    }

    /// Takes a sample; gives an alert if it completes an event. The hosts of an event do not count for the
    /// next one until they cross again.
    pub(crate) fn take(&mut self, sample: Sample) -> Option<Alert> {
        let threshold = *self.rule.thresholds.get(&sample.metric)?;
        let topic = sample.topic();
        if self.above.len() >= HOSTS_MAX && !self.above.contains_key(&topic) {
            return None;
        }
        let is_above = sample.value >= threshold;
        let was_above = self.above.insert(topic, is_above).unwrap_or(false);
        if !is_above || was_above {
            return None;
        }
        let key = (sample.metric.clone(), sample.group.clone());
        let crossed = self.crossed.entry(key).or_default();
        crossed.retain(|earlier| earlier.host != sample.host);
        // Samples of different hosts come in any order: the newest says what is too old.
        crossed.push_back(sample);
        let newest = crossed.iter().map(|it| it.unix_ms).max().unwrap_or(0);
        let oldest = newest.saturating_sub(self.rule.within_ms);
        crossed.retain(|earlier| earlier.unix_ms >= oldest);
        if crossed.len() < self.rule.hosts {
            return None;
        }
        let mut crossings: Vec<Sample> = crossed.drain(..).collect();
        crossings.sort_by_key(|it| it.unix_ms);
        let Sample { metric, group, .. } = crossings.first()?.clone();
        Some(Alert { metric, group, threshold, crossings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        let thresholds = HashMap::from([("cpu".to_owned(), 0.9)]);
        Watch::new(Rule { thresholds, hosts: 3, within_ms: 10_000 })
    }

    fn sample(host: &str, value: f64, second: u64) -> Sample {
        let (metric, group) = ("cpu".to_owned(), "web".to_owned());
        Sample { metric, group, host: host.to_owned(), value, unix_ms: second * 1_000 }
    }

    /// Returns the hosts of each alert that these samples give.
    fn alerts(samples: &[(&str, f64, u64)]) -> Vec<Vec<String>> {
        let mut watch = watch();
        let alerts = samples
            .iter()
            .filter_map(|(host, value, second)| watch.take(sample(host, *value, *second)));
        alerts.map(|alert| alert.crossings.into_iter().map(|it| it.host).collect()).collect()
    }

    #[test]
    fn three_hosts_within_ten_seconds_are_an_event() {
        let found = alerts(&[("a", 0.95, 100), ("b", 0.9, 104), ("d", 0.1, 105), ("c", 0.99, 110)]);
        assert_eq!(found, [["a", "b", "c"]]);
    }

    #[test]
    fn two_hosts_are_none_however_often_they_say_so() {
        let found =
            alerts(&[("a", 1.0, 1), ("b", 1.0, 2), ("a", 1.0, 3), ("a", 0.1, 4), ("a", 1.0, 5)]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn three_hosts_over_a_longer_time_are_none() {
        let found = alerts(&[("a", 1.0, 1), ("b", 1.0, 5), ("c", 1.0, 12)]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn an_event_is_told_once_until_hosts_cross_again() {
        let mut samples: Vec<_> = ["a", "b", "c", "a", "b", "c"].map(|host| (host, 1.0, 1)).into();
        assert_eq!(alerts(&samples).len(), 1);
        samples.extend(["a", "b", "c"].map(|host| (host, 0.2, 2)));
        samples.extend(["c", "b", "a"].map(|host| (host, 1.0, 3)));
        assert_eq!(alerts(&samples).len(), 2);
    }

    #[test]
    fn groups_and_metrics_are_looked_at_apart_and_late_samples_count_by_their_time() {
        let mut watch = watch();
        for (host, group, metric) in
            [("a", "web", "cpu"), ("b", "db", "cpu"), ("c", "web", "memory")]
        {
            let (group, metric) = (group.to_owned(), metric.to_owned());
            assert_eq!(watch.take(Sample { group, metric, ..sample(host, 1.0, 50) }), None);
        }
        assert_eq!(watch.take(sample("d", 1.0, 52)), None);
        let alert = watch.take(sample("e", 1.0, 45)).expect("three of web within ten seconds");
        assert_eq!(alert.key(), "cpu.web:e@45000,a@50000,d@52000");
    }
}
