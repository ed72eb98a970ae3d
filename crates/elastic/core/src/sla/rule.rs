//! The rules of an agreement, and which is handled first (EQS §III-C.2; priorities: EQS §VI).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a limit is of. Each is a rule: above its limit a relay, or the queue, gets help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ElasticRule")]
pub enum Rule {
    /// The part of its host's memory that a relay uses.
    Memory,
    /// The part of its host's network that is used.
    Network,
    /// A relay's processor time.
    Cpu,
    /// The throughput that the queue as a whole promises.
    Throughput,
    /// Time from read to write in a relay.
    Latency,
    /// Bytes to listeners.
    BytesOut,
    /// Bytes from producers.
    BytesIn,
    /// Messages to listeners.
    MessagesOut,
    /// Messages from producers.
    MessagesIn,
    /// Producers and listeners.
    Clients,
}

/// How many rules there are.
const RULES: usize = 10;

impl Rule {
    /// In the default order: first what may end a relay or makes all of it slow, then what users are promised,
    /// then how much a relay may carry.
    pub const ALL: [Self; RULES] = [
        Self::Memory,
        Self::Network,
        Self::Cpu,
        Self::Throughput,
        Self::Latency,
        Self::BytesOut,
        Self::BytesIn,
        Self::MessagesOut,
        Self::MessagesIn,
        Self::Clients,
    ];

    /// Returns its name, as agreements and reasons call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Network => "network",
            Self::Cpu => "cpu",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::BytesOut => "bytes_out",
            Self::BytesIn => "bytes_in",
            Self::MessagesOut => "messages_out",
            Self::MessagesIn => "messages_in",
            Self::Clients => "clients",
        }
    }
}

/// All rules, the one that is handled first in front. As text: a list of names. Those that it leaves out follow in the
/// default order, that of [`Rule::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Rule>")]
pub struct Priorities([Rule; RULES]);

/// A rule that stands more than once in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` stands {times} times, the most is 1: a rule has one place in the order", rule.name())]
pub struct RepeatedRule {
    /// Which.
    pub rule: Rule,
    /// How often.
    pub times: usize,
}

impl Default for Priorities {
    fn default() -> Self {
        Self(Rule::ALL)
    }
}

impl Priorities {
    /// Puts those in front, in this order, and the others behind them.
    ///
    /// # Errors
    /// The first rule that stands there more than once.
    pub fn first(rules: &[Rule]) -> Result<Self, RepeatedRule> {
        let times = |rule: Rule| rules.iter().filter(|other| **other == rule).count();
        if let Some(rule) = rules.iter().copied().find(|rule| times(*rule) > 1) {
            return Err(RepeatedRule { rule, times: times(rule) });
        }
        let others = Rule::ALL.into_iter().filter(|rule| !rules.contains(rule));
        let mut order = rules.iter().copied().chain(others);
        Ok(Self(std::array::from_fn(|at| order.next().unwrap_or(Rule::ALL[at]))))
    }

    /// Returns all rules in their order.
    pub fn order(&self) -> impl Iterator<Item = Rule> + '_ {
        self.0.iter().copied()
    }

    /// Returns a rule's place: the lower, the sooner it is handled.
    #[must_use]
    pub fn place(&self, rule: Rule) -> usize {
        self.0.iter().position(|other| *other == rule).unwrap_or(RULES)
    }
}

impl TryFrom<Vec<Rule>> for Priorities {
    type Error = RepeatedRule;

    fn try_from(rules: Vec<Rule>) -> Result<Self, RepeatedRule> {
        Self::first(&rules)
    }
}
