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

/// Of how many objects together there are samples; of more, rates alone, since whoever asks holds up all others.
const SUMMED_SAMPLES_SERIES_MAX: usize = 64;

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

/// Parses which samples are asked for: both parameters are there, or none.
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
    /// Of the whole broker.
    Totals,
    /// Of these together, as totals.
    Sum(&'a [Subject]),
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
        Shown::Totals => vec![history.totals()],
        Shown::Sum(subjects) => subjects.iter().filter_map(|one| history.of(one)).collect(),
        Shown::Of(subject) => history.of(subject).into_iter().collect(),
    };
    object["message_stats"] = message_stats(&Past::of(&history, &series, query.rates), counters);
    let lengths = match shown {
        Shown::Totals | Shown::Sum(_) => &mut object["queue_totals"],
        Shown::Of(_) => object,
    };
    let past = Past::of(&history, &series, query.lengths);
    for (place, name) in LENGTHS.into_iter().enumerate() {
        lengths[format!("{name}_details")] = past.details(|counts| counts.lengths[place]);
    }
}

/// Returns the rate of a counter between the last two samples, as it stands in an object. `None`:
/// there is no such counter.
pub(super) fn current(api: &ApiState, subject: &Subject, counter: &str) -> Option<Value> {
    let place = MESSAGE_STATS.iter().position(|(name, _)| *name == counter)?;
    let history = api.history.lock().unwrap_or_else(PoisonError::into_inner);
    let past = Past::of(&history, history.of(subject).as_slice(), None);
    past.details(|counts| counts.stats[place]).get("rate").cloned()
}

/// Returns the counters of what rates alone are known of, with those; without, of what is one too
/// many.
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

/// Returns one of the counters, or its rate, as `publish` and `publish_details.rate`: what lists
/// are sorted by.
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

fn message_stats(past: &Past, counters: &MessageCounters) -> Value {
    let mut stats = Map::new();
    for (place, (name, of)) in MESSAGE_STATS.into_iter().enumerate() {
        stats.insert(name.to_owned(), json!(of(counters)));
        stats.insert(format!("{name}_details"), past.details(|counts| counts.stats[place]));
    }
    Value::Object(stats)
}

/// What was sampled of one object, or of several together.
struct Past {
    /// The last two samples with their times; `None` before there are two.
    last_two: Option<[(u64, Option<Counts>); 2]>,
    /// What else is asked for, the latest first.
    taken: Option<Vec<(u64, Counts)>>,
}

impl Past {
    fn of(history: &History, series: &[&Series], wanted: Option<Samples>) -> Self {
        let Some((before_ms, last_ms)) = history.last_two_ms().filter(|_| !series.is_empty())
        else {
            return Self { last_two: None, taken: None };
        };
        // One that was not there yet adds nothing.
        let at = |at_ms| {
            let counts = series.iter().filter_map(|one| one.at(at_ms));
            counts.reduce(|sum, counts| sum.plus(&counts))
        };
        let taken = wanted.map(|Samples { count, every_ms }| {
            let count = if series.len() <= SUMMED_SAMPLES_SERIES_MAX { count } else { 0 };
            let sample = |back| {
                let at_ms = last_ms.checked_sub(back * every_ms)?;
                Some((at_ms, at(at_ms)?))
            };
            (0..count).map_while(sample).collect()
        });
        let last_two = [before_ms, last_ms].map(|at_ms| (at_ms, at(at_ms)));
        Self { last_two: Some(last_two), taken }
    }

    /// Returns the rate between the last two samples, and what else is asked for.
    fn details(&self, of: impl Fn(&Counts) -> u64) -> Value {
        let Some([(before_ms, before), (last_ms, last)]) = &self.last_two else {
            return json!({ "rate": 0.0 });
        };
        let rate_now = rate(before.as_ref().map(&of), *before_ms, last.as_ref().map(&of), *last_ms);
        let mut details = json!({ "rate": rate_now });
        let Some(taken) = &self.taken else { return details };
        let taken: Vec<_> = taken.iter().map(|(at_ms, counts)| (*at_ms, of(counts))).collect();
        if let (Some((newest_ms, newest)), Some((oldest_ms, oldest))) =
            (taken.first(), taken.last())
        {
            let avg_rate = rate(Some(*oldest), *oldest_ms, Some(*newest), *newest_ms);
            details["avg_rate"] = json!(avg_rate);
            let sum: u64 = taken.iter().map(|(_, value)| value).sum();
            details["avg"] = json!(sum as f64 / taken.len() as f64);
        }
        let samples = taken.iter();
        details["samples"] =
            samples.map(|(at_ms, value)| json!({ "sample": value, "timestamp": at_ms })).collect();
        details
    }
}

/// Returns by how much it changes a second.
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
        Past::of(history, &[history.totals()], wanted).details(|counts| counts.stats[0])
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
    fn several_objects_add_up_and_one_that_is_new_was_nothing_before() {
        let mut history = History::default();
        let subject = |name: &str| Subject::Queue(quelea_model::QueueId(name.len() as u32));
        let mut record = |at_ms, objects: &[(&str, u64)]| {
            let counts = |publish| {
                let counters = MessageCounters { publish, ..MessageCounters::default() };
                Counts::new(publish, 0, &counters)
            };
            let objects: Vec<_> =
                objects.iter().map(|(name, publish)| (subject(name), counts(*publish))).collect();
            history.record(at_ms, counts(0), objects.into_iter());
        };
        record(5_000, &[("a", 10), ("else", 100)]);
        record(10_000, &[("a", 20), ("bb", 5), ("else", 900)]);
        let series = ["a", "bb"].map(|name| history.of(&subject(name)).unwrap());
        let wanted = Some(Samples { count: 9, every_ms: 5_000 });
        let details = Past::of(&history, &series, wanted).details(|counts| counts.stats[0]);
        assert_eq!(details["rate"], 3.0);
        assert_eq!(
            details["samples"],
            json!([{"sample": 25, "timestamp": 10_000}, {"sample": 10, "timestamp": 5_000}])
        );
        let many = [series[0]; SUMMED_SAMPLES_SERIES_MAX + 1];
        let details = Past::of(&history, &many, wanted).details(|counts| counts.stats[0]);
        assert_eq!((&details["rate"], &details["samples"]), (&json!(130.0), &json!([])));
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
