//! The dimensions of load, their limits, and how they are written for people.

use std::fmt::{self, Display, Formatter};

use super::tuning::OF_CAPACITY;
use super::view::Load;
use crate::sla::{RelayLimits, Rule, Sla};

/// A dimension of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kpi {
    MessagesIn = 0,
    BytesIn = 1,
    MessagesOut = 2,
    BytesOut = 3,
    Cpu = 4,
    Clients = 5,
    Latency = 6,
    Memory = 7,
    Network = 8,
}

/// How many dimensions there are.
pub(crate) const KPIS: usize = 9;

/// What a relay or a producer uses, by [`Kpi`].
pub(crate) type Vector = [f64; KPIS];

impl Kpi {
    pub(crate) const ALL: [Self; KPIS] = [
        Self::MessagesIn,
        Self::BytesIn,
        Self::MessagesOut,
        Self::BytesOut,
        Self::Cpu,
        Self::Clients,
        Self::Latency,
        Self::Memory,
        Self::Network,
    ];

    /// That relays measure themselves, and nobody for each producer.
    pub(crate) const OF_RELAYS: [Self; 3] = [Self::Cpu, Self::Memory, Self::Network];

    /// Returns the KPI of a rule, if the rule is about relays.
    const fn of(rule: Rule) -> Option<Self> {
        Some(match rule {
            Rule::Memory => Self::Memory,
            Rule::Network => Self::Network,
            Rule::Cpu => Self::Cpu,
            Rule::Throughput => return None,
            Rule::Latency => Self::Latency,
            Rule::BytesOut => Self::BytesOut,
            Rule::BytesIn => Self::BytesIn,
            Rule::MessagesOut => Self::MessagesOut,
            Rule::MessagesIn => Self::MessagesIn,
            Rule::Clients => Self::Clients,
        })
    }

    /// Returns the rule that limits it.
    pub(crate) const fn rule(self) -> Rule {
        match self {
            Self::Memory => Rule::Memory,
            Self::Network => Rule::Network,
            Self::Cpu => Rule::Cpu,
            Self::Latency => Rule::Latency,
            Self::BytesOut => Rule::BytesOut,
            Self::BytesIn => Rule::BytesIn,
            Self::MessagesOut => Rule::MessagesOut,
            Self::MessagesIn => Rule::MessagesIn,
            Self::Clients => Rule::Clients,
        }
    }

    /// Returns whether two producers' shares add up. Latency does not: it makes a relay hot and
    /// keeps others from coming, but a sum of latencies says nothing.
    pub(crate) const fn adds_up(self) -> bool {
        !matches!(self, Self::Latency)
    }

    /// Returns whether the sum over all relays says how many it takes. Memory and network of a host
    /// are partly nobody's load: what a process takes without any, and what other programs send.
    /// Ever more relays would carry as much of that each.
    pub(crate) const fn is_shared_out(self) -> bool {
        self.adds_up() && !self.falls_late()
    }

    /// Returns whether it may stay as it is when load leaves.
    pub(crate) const fn falls_late(self) -> bool {
        matches!(self, Self::Latency | Self::Memory | Self::Network)
    }

    /// Returns the field of the SLA that limits it, and that of [`Load`].
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::MessagesIn => ("messages_in_per_s_max", "messages_in"),
            Self::BytesIn => ("bytes_in_per_s_max", "bytes_in"),
            Self::MessagesOut => ("", "messages_out"),
            Self::BytesOut => ("bytes_out_per_s_max", "bytes_out"),
            Self::Cpu => ("", "cpu"),
            Self::Clients => ("clients_max", "clients"),
            Self::Latency => ("latency_us_max", "latency_us"),
            Self::Memory => ("memory_percent_max", "memory_percent"),
            Self::Network => ("network_percent_max", "network_percent"),
        }
    }

    /// Returns the factor by which its value is multiplied for people.
    const fn scale(self) -> f64 {
        if matches!(self, Self::Memory | Self::Network) { PERCENT } else { 1.0 }
    }
}

const PERCENT: f64 = 100.0;

/// Returns a load's figures as a vector, without what no measurement can be: negative or no number.
pub(crate) fn vector(load: &Load) -> Vector {
    let all = [
        load.messages_in,
        load.bytes_in,
        load.messages_out,
        load.bytes_out,
        load.cpu,
        load.clients,
        load.latency_us,
        load.memory,
        load.network,
    ];
    all.map(|value| if value > 0.0 && value <= f64::MAX { value } else { 0.0 })
}

/// What a relay may carry: the smaller of the SLA's limit and [`OF_CAPACITY`] of its own capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Infinite where there is none.
    pub(crate) values: Vector,
    /// Whether it is the SLA's.
    of_sla: [bool; KPIS],
    /// By the agreement's priorities.
    order: [Kpi; KPIS],
}

/// A relay's data path runs on one core, so one core is its capacity if it says nothing else.
const CPU_CORES: f64 = 1.0;

/// Of memory and network relays report shares, so all of it is one.
const ALL_OF_IT: f64 = 1.0;

impl Limits {
    pub(crate) fn of(sla: &Sla, capacity: &Load) -> Self {
        let mut own = vector(capacity);
        if own[Kpi::Cpu as usize] == 0.0 {
            own[Kpi::Cpu as usize] = CPU_CORES;
        }
        own[Kpi::Memory as usize] = ALL_OF_IT;
        own[Kpi::Network as usize] = ALL_OF_IT;
        own.iter_mut().for_each(|value| *value *= OF_CAPACITY);
        let agreed = [
            sla.messages_in_per_s_max as f64,
            sla.bytes_in_per_s_max as f64,
            0.0,
            sla.bytes_out_per_s_max as f64,
            0.0,
            f64::from(sla.clients_max),
            sla.latency_us_max as f64,
            f64::from(sla.memory_percent_max) / PERCENT,
            f64::from(sla.network_percent_max) / PERCENT,
        ];
        let mut in_order = sla.priorities.order().filter_map(Kpi::of);
        let order = std::array::from_fn(|at| in_order.next().unwrap_or(Kpi::ALL[at]));
        let mut limits = Self { values: [f64::INFINITY; KPIS], of_sla: [false; KPIS], order };
        for kpi in 0..KPIS {
            let or_none = |value: f64| if value > 0.0 { value } else { f64::INFINITY };
            limits.of_sla[kpi] = agreed[kpi] > 0.0 && agreed[kpi] <= or_none(own[kpi]);
            limits.values[kpi] = or_none(agreed[kpi]).min(or_none(own[kpi]));
        }
        limits
    }

    /// Returns the part of the limit that is used, in the dimension where it is largest.
    pub(crate) fn load(&self, usage: &Vector) -> (f64, Kpi) {
        let mut most = (0.0, Kpi::BytesOut);
        for kpi in Kpi::ALL {
            let part = usage[kpi as usize] / self.values[kpi as usize];
            if part > most.0 {
                most = (part, kpi);
            }
        }
        most
    }

    /// Returns the KPI that is to be handled first, with the part of its limit that is used: of
    /// those above `level` the first by the agreement's priorities; if none is, the one that is
    /// used most.
    pub(crate) fn first(&self, usage: &Vector, level: f64) -> (f64, Kpi) {
        let parts =
            self.order.iter().map(|kpi| (usage[*kpi as usize] / self.values[*kpi as usize], *kpi));
        let mut above = parts.filter(|(part, _)| *part > level);
        above.next().unwrap_or_else(|| self.load(usage))
    }

    /// Returns a KPI's place among the others: the lower, the sooner it is handled.
    pub(crate) fn place(&self, kpi: Kpi) -> usize {
        self.order.iter().position(|other| *other == kpi).unwrap_or(KPIS)
    }

    /// Returns the KPIs in their order.
    pub(crate) fn order(&self) -> [Kpi; KPIS] {
        self.order
    }

    /// Describes as [`Limits::describe`] does, and says which others above `level` come behind it.
    pub(crate) fn describe_first(&self, kpi: Kpi, usage: &Vector, level: f64) -> String {
        let mut text = self.describe(kpi, usage).to_string();
        let is_above = |other: &Kpi| usage[*other as usize] / self.values[*other as usize] > level;
        let others = self.order.iter().filter(|other| **other != kpi && is_above(other));
        let others: Vec<&str> = others.map(|other| other.rule().name()).collect();
        if !others.is_empty() {
            let (rule, others) = (kpi.rule().name(), others.join(", "));
            text = format!("{text} (rule {rule}, by priority before {others})");
        }
        text
    }

    /// Returns the limits that a promised throughput is held against.
    pub(crate) fn of_relay(&self) -> RelayLimits {
        let value = |kpi: Kpi| self.values[kpi as usize];
        RelayLimits {
            messages_in: value(Kpi::MessagesIn),
            bytes_in: value(Kpi::BytesIn),
            messages_out: value(Kpi::MessagesOut),
            bytes_out: value(Kpi::BytesOut),
            clients: value(Kpi::Clients),
        }
    }

    /// Describes for people: the KPI, its value, and the limit by name.
    pub(crate) fn describe(&self, kpi: Kpi, usage: &Vector) -> impl Display + use<> {
        KpiReading { kpi, value: usage[kpi as usize], limit: *self }
    }
}

struct KpiReading {
    kpi: Kpi,
    value: f64,
    limit: Limits,
}

impl Display for KpiReading {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let at = self.kpi as usize;
        let (agreed, own) = self.kpi.names();
        let limit = self.limit.values[at];
        let (value, most) = (self.value * self.kpi.scale(), limit * self.kpi.scale());
        write!(f, "{own} {} is {:.2} of ", Figure(value), self.value / limit)?;
        if self.limit.of_sla[at] {
            write!(f, "{agreed} {}", Figure(most))
        } else {
            write!(f, "the relay's capacity {own} {}", Figure(most))
        }
    }
}

/// A figure with three digits or more where they matter.
struct Figure(f64);

impl Display for Figure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 >= 100.0 || self.0.fract() == 0.0 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.2}", self.0)
        }
    }
}
