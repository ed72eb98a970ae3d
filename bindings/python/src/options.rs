//! Keyword arguments as the library's options. Names and types for type checkers stand in
//! quelea_cmq/options.py.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quelea_cmq::proto::limits;
use quelea_cmq::{
    Config, DestinationOptions, MailboxOptions, Mode, PreSharedKey, Repair, WhenFull, Wire,
};

use crate::error::{configuration, unknown_option};

type Given<'a, 'py> = Option<&'a Bound<'py, PyDict>>;

/// How long `close` waits for acknowledgements, by default: longer than any round trip, shorter
/// than the patience of whoever stops a program.
const LINGER_DEFAULT: Duration = Duration::from_secs(5);

/// An endpoint's settings.
pub(crate) struct EndpointOptions {
    pub(crate) config: Config,
    pub(crate) linger: Duration,
}

impl EndpointOptions {
    pub(crate) fn of(given: Given<'_, '_>) -> PyResult<Self> {
        let mut config = match given.map(|given| given.get_item("wire")).transpose()?.flatten() {
            Some(wire) => of_wire(&wire)?,
            None => Config::default(),
        };
        let mut linger = LINGER_DEFAULT;
        for (name, value) in given.into_iter().flatten() {
            match name.extract()? {
                "wire" => {}
                name @ "qthresh" => {
                    let (least, most) = (limits::SEGMENT_BYTES_MIN, limits::DATAGRAM_BYTES_MAX);
                    config.qthresh = number(name, &value, least, most)?;
                }
                name @ "timeout" => config.timeout = seconds(name, &value)?,
                name @ "pre_shared_key" => config.pre_shared_key = Some(secret(name, &value)?),
                name @ "linger" => linger = seconds(name, &value)?,
                name @ "segment_bytes_max" => {
                    let (least, most) = (limits::SEGMENT_BYTES_MIN, limits::DATAGRAM_BYTES_MAX);
                    config.segment_bytes_max = number(name, &value, least, most)?;
                }
                name @ "message_bytes_max" => {
                    config.message_bytes_max = number(name, &value, 1, limits::MESSAGE_BYTES_MAX)?;
                }
                name @ "outbox_bytes_max" => {
                    config.outbox_bytes_max = number(name, &value, 1, usize::MAX)?;
                }
                name @ "destinations_max" => {
                    config.destinations_max = number(name, &value, 1, limits::DESTINATIONS_MAX)?;
                }
                name @ "flows_max" => config.flows_max = number(name, &value, 1, usize::MAX)?,
                name @ "flows_per_address_max" => {
                    config.flows_per_address_max = number(name, &value, 1, usize::MAX)?;
                }
                name @ "reassembly_bytes_max" => {
                    config.reassembly_bytes_max = number(name, &value, 1, usize::MAX)?;
                }
                unknown => return Err(unknown_option(unknown)),
            }
        }
        Ok(Self { config, linger })
    }
}

/// Reads how messages go to one destination.
pub(crate) fn destination(given: Given<'_, '_>) -> PyResult<DestinationOptions> {
    let mut options = DestinationOptions::default();
    let mut deadline = None;
    let mut mode = None;
    for (name, value) in given.into_iter().flatten() {
        match name.extract()? {
            "mode" => mode = Some(value),
            name @ "deadline" => deadline = Some(seconds(name, &value)?),
            name @ "xor" => {
                let data = number(name, &value, 1, limits::REPAIR_DATA_MAX)?;
                options.repair = Repair::Xor { data };
            }
            name @ "reed_solomon" => options.repair = reed_solomon(name, &value)?,
            "credit" => options.credit = value.extract()?,
            name @ "timeout" => options.timeout = Some(seconds(name, &value)?),
            name @ "dead_after" => options.dead_after = Some(seconds(name, &value)?),
            name @ "when_full" => options.when_full = when_full(name, &value)?,
            unknown => return Err(unknown_option(unknown)),
        }
    }
    if let Some(mode) = mode {
        options.mode = of_mode(&mode, deadline)?;
    }
    Ok(options)
}

/// Reads how a mailbox takes messages.
pub(crate) fn mailbox(given: Given<'_, '_>) -> PyResult<MailboxOptions> {
    let mut options = MailboxOptions::default();
    for (name, value) in given.into_iter().flatten() {
        match name.extract()? {
            name @ "bytes_max" => options.bytes_max = number(name, &value, 1, usize::MAX)?,
            "acknowledged_by_application" => {
                options.acknowledged_by_application = value.extract()?;
            }
            unknown => return Err(unknown_option(unknown)),
        }
    }
    Ok(options)
}

fn of_wire(value: &Bound<'_, PyAny>) -> PyResult<Config> {
    match value.extract()? {
        "quelea" => Ok(Config::default()),
        "classic_string" => Ok(Config::classic()),
        "classic_bytes" => Ok(Config { wire: Wire::ClassicBytes, ..Config::classic() }),
        _ => Err(configuration("wire", value, "it is quelea, classic_string or classic_bytes")),
    }
}

fn of_mode(value: &Bound<'_, PyAny>, deadline: Option<Duration>) -> PyResult<Mode> {
    Ok(match (value.extract()?, deadline) {
        ("lossy", _) => Mode::Lossy,
        ("latest_only", _) => Mode::LatestOnly,
        ("reliable_unordered", _) => Mode::ReliableUnordered,
        ("reliable_ordered", _) => Mode::ReliableOrdered,
        ("reliable_until", Some(deadline)) => Mode::ReliableUntil(deadline),
        ("reliable_until", None) => {
            return Err(configuration("mode", value, "it needs a deadline in seconds"));
        }
        _ => {
            let known =
                "it is lossy, latest_only, reliable_unordered, reliable_ordered or reliable_until";
            return Err(configuration("mode", value, known));
        }
    })
}

fn when_full(name: &str, value: &Bound<'_, PyAny>) -> PyResult<WhenFull> {
    Ok(match value.extract()? {
        "block" => WhenFull::Block,
        "refuse" => WhenFull::Refuse,
        "drop_new" => WhenFull::DropNew,
        "drop_oldest" => WhenFull::DropOldest,
        _ => {
            let known = "it is block, refuse, drop_new or drop_oldest";
            return Err(configuration(name, value, known));
        }
    })
}

fn reed_solomon(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Repair> {
    let (data, parity) = value.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
    Ok(Repair::ReedSolomon {
        data: number(name, &data, 1, limits::REPAIR_DATA_MAX)?,
        parity: number(name, &parity, 1, limits::REPAIR_PARITY_MAX)?,
    })
}

/// Reads a number from `least` to `most`.
fn number<T>(name: &str, value: &Bound<'_, PyAny>, least: T, most: T) -> PyResult<T>
where
    T: TryFrom<i128> + Copy + core::fmt::Display + PartialOrd,
{
    let wanted = || configuration(name, value, format!("it is from {least} to {most}"));
    let number = T::try_from(value.extract::<i128>()?).map_err(|_| wanted())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(wanted()) }
}

fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value.extract()?)
        .map_err(|_| configuration(name, value, "it is in seconds, zero or more"))
}

fn secret(name: &str, value: &Bound<'_, PyAny>) -> PyResult<PreSharedKey> {
    let bytes: Vec<u8> = value.extract()?;
    let given = bytes.len();
    // The value is a secret, so the error does not show it.
    let hidden = pyo3::types::PyString::new(value.py(), "…");
    let wrong = |_| configuration(name, &hidden, format!("it has {given} bytes, not 32"));
    bytes.try_into().map(PreSharedKey).map_err(wrong)
}
