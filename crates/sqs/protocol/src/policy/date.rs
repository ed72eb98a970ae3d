//! Dates in conditions: ISO 8601, or seconds since 1970.

use jiff::civil::Time;

use crate::sigv4::{date, number, seconds_of, time_of_day};

/// Parses `2026-11-21`, `2026-11-21T15:04Z`, `2026-11-21T15:04:05.678+01:00` or `1795273445`.
/// Returns the milliseconds since 1970.
pub(super) fn parse(text: &str) -> Option<i64> {
    if let Some(seconds) = number(text) {
        return i64::try_from(seconds).ok()?.checked_mul(1000);
    }
    let (day_text, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = day_text.split('-');
    let [year, month, day] = std::array::from_fn(|_| parts.next().unwrap_or(""));
    if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let date = date(number(year)?, number(month)?, number(day)?)?;
    let in_day_ms = time.map_or(Some(0), ms_of_day)?;
    Some(seconds_of(date, Time::midnight()) * 1000 + in_day_ms)
}

/// Parses `15:04`, seconds and their fraction if given, and the zone.
fn ms_of_day(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', '+', '-'])?;
    let (time, zone) = text.split_at(zone_at);
    let (time, fraction) = match time.split_once('.') {
        Some((time, fraction)) => (time, Some(fraction)),
        None => (time, None),
    };
    let mut parts = time.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next());
    let two = [Some(hour), Some(minute), second].into_iter().flatten().all(|part| part.len() == 2);
    if parts.next().is_some() || !two || (fraction.is_some() && second.is_none()) {
        return None;
    }
    let second = second.map_or(Some(0), number)?;
    let time = time_of_day(number(hour)?, number(minute)?, second)?;
    let second = time.duration_since(Time::midnight()).as_secs();
    let ms = fraction.map_or(Some(0), fraction_ms)?;
    Some(second * 1000 + ms - zone_minutes(zone)? * 60 * 1000)
}

fn fraction_ms(digits: &str) -> Option<i64> {
    number(digits)?;
    let three: String = digits.chars().chain("00".chars()).take(3).collect();
    three.parse().ok()
}

fn zone_minutes(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (hours, minutes) = zone[1..].split_once(':')?;
    if (hours.len(), minutes.len()) != (2, 2) {
        return None;
    }
    let time = time_of_day(number(hours)?, number(minutes)?, 0)?;
    let minutes = i64::from(time.hour()) * 60 + i64::from(time.minute());
    Some(if zone.starts_with('-') { -minutes } else { minutes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_all_their_forms() {
        let day_ms = 1_795_219_200_000;
        let cases = [
            ("2026-11-21", day_ms),
            ("1795219200", day_ms),
            ("2026-11-21T00:00Z", day_ms),
            ("2026-11-21T00:00:01Z", day_ms + 1000),
            ("2026-11-21T00:00:01.5Z", day_ms + 1500),
            ("2026-11-21T00:00:01.0019Z", day_ms + 1001),
            ("2026-11-21T01:30:00+01:30", day_ms),
            ("2026-11-20T23:00:00-01:00", day_ms),
            ("0001-01-01", -62_135_596_800_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Some(ms), "{text}");
        }
        for bad in [
            "",
            "x",
            "2026-11",
            "2026-11-31",
            "26-11-21",
            "2026-11-21T",
            "2026-11-21T00Z",
            "2026-11-21T00:00",
            "2026-11-21T24:00Z",
            "2026-11-21T00:00.5Z",
            "2026-11-21T0:00Z",
            "2026-11-21T00:00:00.Z",
            "2026-11-21T00:00:00+1",
            "-5",
            "2026-11-21-01",
            "99999999999999999999",
            "2026-11-21T00:00:00ZZ",
            "2026-11-21T00:00:00é",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
