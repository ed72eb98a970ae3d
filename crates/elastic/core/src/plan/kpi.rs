//! The dimensions of load, their limits, and how they are written for people.

use std::fmt::{self, Display, Formatter};

use super::tuning::OF_CAPACITY;
use super::view::Load;
use crate::sla::Sla;

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
}

/// How many dimensions there are.
pub(crate) const KPIS: usize = 7;

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
    ];

    /// Whether two producers' shares add up. Latency does not: it makes a relay hot and keeps others
    /// from coming, but a sum of latencies says nothing.
    pub(crate) const fn adds_up(self) -> bool {
        !matches!(self, Self::Latency)
    }

    /// The field of the SLA that limits it, and that of [`Load`].
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::MessagesIn => ("messages_in_per_s_max", "messages_in"),
            Self::BytesIn => ("bytes_in_per_s_max", "bytes_in"),
            Self::MessagesOut => ("", "messages_out"),
            Self::BytesOut => ("bytes_out_per_s_max", "bytes_out"),
            Self::Cpu => ("", "cpu"),
            Self::Clients => ("clients_max", "clients"),
            Self::Latency => ("latency_us_max", "latency_us"),
        }
    }
}

/// The same, without what no measurement can be: negative or no number.
pub(crate) fn vector(load: &Load) -> Vector {
    let all = [
        load.messages_in,
        load.bytes_in,
        load.messages_out,
        load.bytes_out,
        load.cpu,
        load.clients,
        load.latency_us,
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
}

/// A relay's data path runs on one core, so one core is its capacity if it says nothing else.
const CPU_CORES: f64 = 1.0;

impl Limits {
    pub(crate) fn of(sla: &Sla, capacity: &Load) -> Self {
        let mut own = vector(capacity);
        if own[Kpi::Cpu as usize] == 0.0 {
            own[Kpi::Cpu as usize] = CPU_CORES;
        }
        own.iter_mut().for_each(|value| *value *= OF_CAPACITY);
        let agreed = [
            sla.messages_in_per_s_max as f64,
            sla.bytes_in_per_s_max as f64,
            0.0,
            sla.bytes_out_per_s_max as f64,
            0.0,
            f64::from(sla.clients_max),
            sla.latency_us_max as f64,
        ];
        let mut limits = Self { values: [f64::INFINITY; KPIS], of_sla: [false; KPIS] };
        for kpi in 0..KPIS {
            let or_none = |value: f64| if value > 0.0 { value } else { f64::INFINITY };
            limits.of_sla[kpi] = agreed[kpi] > 0.0 && agreed[kpi] <= or_none(own[kpi]);
            limits.values[kpi] = or_none(agreed[kpi]).min(or_none(own[kpi]));
        }
        limits
    }

    /// The part of the limit that is used, in the dimension where it is largest.
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

    /// For people: the KPI, its value, and the limit by name.
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
        write!(f, "{own} {} is {:.2} of ", Figure(self.value), self.value / limit)?;
        if self.limit.of_sla[at] {
            write!(f, "{agreed} {}", Figure(limit))
        } else {
            write!(f, "the relay's capacity {own} {}", Figure(limit))
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
