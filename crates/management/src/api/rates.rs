//! Rates and samples beside counters, as RabbitMQ gives them: `publish` has `publish_details` with its `rate`, and with
//! `samples` where they are asked for.

use std::sync::PoisonError;

use quelea_broker::report::MessageCounters;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::history::{Counts, History, LENGTHS, MESSAGE_STATS, Series, Subject};
use crate::limits::SAMPLES_MAX;
use crate::recent::Field;
use crate::state::ApiState;

/// A day.
const SECONDS_MAX: u64 = 86_400;

/// As it stands behind `?`; seconds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct RawRateQuery {
    /// How far back samples of lengths go; with `lengths_incr`.
    #[schemars(with = "Option<u64>", range(min = 1, max = SECONDS_MAX))]
    lengths_age: Option<String>,
    /// How far apart they are.
    #[schemars(with = "Option<u64>", range(min = 1, max = SECONDS_MAX))]
    lengths_incr: Option<String>,
    /// How far back samples of rates go; with `msg_rates_incr`.
    #[schemars(with = "Option<u64>", range(min = 1, max = SECONDS_MAX))]
    msg_rates_age: Option<String>,
    /// How far apart they are.
    #[schemars(with = "Option<u64>", range(min = 1, max = SECONDS_MAX))]
    msg_rates_incr: Option<String>,
}

/// Which samples are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateQuery {
    lengths: Option<Samples>,
    rates: Option<Samples>,
}

#[derive(Clone, Copy, Debug)]
struct Samples {
    count: u64,
    every_ms: u64,
}

impl RateQuery {
    /// # Errors
    /// [`ApiError::BadRequest`] with the parameter, its limit and its value.
    pub(super) fn parse(raw: &RawRateQuery) -> Result<Self, ApiError> {
        Ok(Self {
            lengths: samples("lengths", raw.lengths_age.as_ref(), raw.lengths_incr.as_ref())?,
            rates: samples("msg_rates", raw.msg_rates_age.as_ref(), raw.msg_rates_incr.as_ref())?,
        })
    }
}

/// Both, or none.
fn samples(
    name: &str,
    age: Option<&String>,
    every: Option<&String>,
) -> Result<Option<Samples>, ApiError> {
    let (Some(age), Some(every)) = (age, every) else {
        return match (age, every) {
            (None, None) => Ok(None),
            _ => Err(ApiError::BadRequest(format!("{name}_age and {name}_incr go together"))),
        };
    };
    let seconds = |field: &str, text: &String| match text.parse::<u64>() {
        Ok(seconds) if (1..=SECONDS_MAX).contains(&seconds) => Ok(seconds),
        _ => {
            let reason = format!("{name}_{field} must be from 1 to {SECONDS_MAX}, it is {text:?}");
            Err(ApiError::BadRequest(reason))
        }
    };
    let (age_s, every_s) = (seconds("age", age)?, seconds("incr", every)?);
    let count = age_s / every_s + 1;
    if count > SAMPLES_MAX {
        let reason =
            format!("{name}_age / {name}_incr are at most {SAMPLES_MAX}, they are {count}");
        return Err(ApiError::BadRequest(reason));
    }
    Ok(Some(Samples { count, every_ms: every_s * 1_000 }))
}

/// Whose counters are shown.
#[derive(Clone, Copy)]
pub(super) enum Shown<'a> {
    Totals,
    Of(&'a Subject),
}

/// Sets counters and what waits, with their rates, in an object.
pub(super) fn add(
    api: &ApiState,
    object: &mut Value,
    shown: Shown<'_>,
    counters: &MessageCounters,
    query: RateQuery,
) {
    let history = api.history.lock().unwrap_or_else(PoisonError::into_inner);
    let series = match shown {
        Shown::Totals => Some(history.totals()),
        Shown::Of(subject) => history.of(subject),
    };
    object["message_stats"] = message_stats(&history, series, counters, query.rates);
    let lengths = match shown {
        Shown::Totals => &mut object["queue_totals"],
        Shown::Of(_) => object,
    };
    for (place, name) in LENGTHS.into_iter().enumerate() {
        let details = details(&history, series, query.lengths, |counts| counts.lengths[place]);
        lengths[format!("{name}_details")] = details;
    }
}

/// The rate of a counter between the last two samples, as it stands in an object. `None`: there is no such counter.
pub(super) fn current(api: &ApiState, subject: &Subject, counter: &str) -> Option<Value> {
    let place = MESSAGE_STATS.iter().position(|(name, _)| *name == counter)?;
    let history = api.history.lock().unwrap_or_else(PoisonError::into_inner);
    let series = history.of(subject);
    let details = details(&history, series, None, |counts| counts.stats[place]);
    details.get("rate").cloned()
}

/// Counters of what rates alone are known of, with those; without, of what is one too many.
pub(super) fn with_rates<C, const N: usize>(
    fields: [Field<C>; N],
    counters: &C,
    rates: Option<[f64; N]>,
) -> Map<String, Value> {
    let mut shown = Map::new();
    for (place, (name, of)) in fields.into_iter().enumerate() {
        shown.insert(name.to_owned(), json!(of(counters)));
        if let Some(rates) = rates {
            shown.insert(format!("{name}_details"), json!({ "rate": rates[place] }));
        }
    }
    shown
}

/// One of them, or its rate, as `publish` and `publish_details.rate`: what lists are sorted by.
pub(super) fn one_with_rate<C, const N: usize>(
    fields: [Field<C>; N],
    counters: &C,
    rates: Option<[f64; N]>,
    column: &[String],
) -> Option<Value> {
    let place = |wanted: &str| fields.iter().position(|(name, _)| *name == wanted);
    match column {
        [name] => Some(json!(fields[place(name)?].1(counters))),
        [details, rate] if rate == "rate" => {
            Some(json!(rates?[place(details.strip_suffix("_details")?)?]))
        }
        _ => None,
    }
}

fn message_stats(
    history: &History,
    series: Option<&Series>,
    counters: &MessageCounters,
    samples: Option<Samples>,
) -> Value {
    let mut stats = Map::new();
    for (place, (name, of)) in MESSAGE_STATS.into_iter().enumerate() {
        stats.insert(name.to_owned(), json!(of(counters)));
        let details = details(history, series, samples, |counts| counts.stats[place]);
        stats.insert(format!("{name}_details"), details);
    }
    Value::Object(stats)
}

/// The rate between the last two samples, and what else is asked for, the latest first.
fn details(
    history: &History,
    series: Option<&Series>,
    wanted: Option<Samples>,
    of: impl Fn(&Counts) -> u64,
) -> Value {
    let (Some((before_ms, last_ms)), Some(series)) = (history.last_two_ms(), series) else {
        return json!({ "rate": 0.0 });
    };
    let value = |at_ms| series.at(at_ms).map(|counts| of(&counts));
    let mut details = json!({ "rate": rate(value(before_ms), before_ms, value(last_ms), last_ms) });
    let Some(Samples { count, every_ms }) = wanted else { return details };
    let taken: Vec<_> = (0..count)
        .map_while(|back| {
            let at_ms = last_ms.checked_sub(back * every_ms)?;
            Some((at_ms, value(at_ms)?))
        })
        .collect();
    if let (Some((newest_ms, newest)), Some((oldest_ms, oldest))) = (taken.first(), taken.last()) {
        details["avg_rate"] = json!(rate(Some(*oldest), *oldest_ms, Some(*newest), *newest_ms));
        let sum: u64 = taken.iter().map(|(_, value)| value).sum();
        details["avg"] = json!(sum as f64 / taken.len() as f64);
    }
    details["samples"] =
        taken.iter().map(|(at_ms, value)| json!({ "sample": value, "timestamp": at_ms })).collect();
    details
}

/// By how much it changes a second.
fn rate(before: Option<u64>, before_ms: u64, last: Option<u64>, last_ms: u64) -> f64 {
    match (before, last, last_ms.saturating_sub(before_ms)) {
        (Some(before), Some(last), passed_ms @ 1..) => {
            (last as f64 - before as f64) * 1_000.0 / passed_ms as f64
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(samples: &[(u64, u64)]) -> History {
        let mut history = History::default();
        for (at_ms, publish) in samples {
            let counters = MessageCounters { publish: *publish, ..MessageCounters::default() };
            history.record(*at_ms, Counts::new(0, 0, &counters), std::iter::empty());
        }
        history
    }

    fn publish(history: &History, wanted: Option<Samples>) -> Value {
        details(history, Some(history.totals()), wanted, |counts| counts.stats[0])
    }

    #[test]
    fn a_rate_is_that_between_the_last_two_samples() {
        assert_eq!(publish(&history(&[]), None), json!({ "rate": 0.0 }));
        assert_eq!(publish(&history(&[(5_000, 10)]), None), json!({ "rate": 0.0 }));
        assert_eq!(publish(&history(&[(5_000, 10), (10_000, 35)]), None), json!({ "rate": 5.0 }));
        let idle = [(5_000, 10), (10_000, 35), (15_000, 35)];
        assert_eq!(publish(&history(&idle), None), json!({ "rate": 0.0 }));
    }

    #[test]
    fn samples_go_back_as_far_as_asked_for_and_known() {
        let history = history(&[(5_000, 0), (10_000, 10), (15_000, 30), (20_000, 60)]);
        let samples = |count, every_ms| publish(&history, Some(Samples { count, every_ms }));
        assert_eq!(
            samples(3, 5_000),
            json!({
                "rate": 6.0, "avg_rate": 5.0, "avg": 100.0 / 3.0,
                "samples": [
                    {"sample": 60, "timestamp": 20_000},
                    {"sample": 30, "timestamp": 15_000},
                    {"sample": 10, "timestamp": 10_000},
                ]
            })
        );
        assert_eq!(samples(9, 10_000)["samples"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_asked_for_is_named_with_its_limit() {
        let text = |text: &str| Some(text.to_owned());
        for (age, every, problem) in [
            (text("60"), None, "lengths_age and lengths_incr go together"),
            (text("0"), text("5"), "lengths_age must be from 1 to 86400, it is \"0\""),
            (text("60"), text("x"), "lengths_incr must be from 1 to 86400, it is \"x\""),
            (
                text("86400"),
                text("1"),
                "lengths_age / lengths_incr are at most 1000, they are 86401",
            ),
        ] {
            let raw =
                RawRateQuery { lengths_age: age, lengths_incr: every, ..RawRateQuery::default() };
            let Err(ApiError::BadRequest(reason)) = RateQuery::parse(&raw) else { panic!() };
            assert_eq!(reason, problem);
        }
    }
}
