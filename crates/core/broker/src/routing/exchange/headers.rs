//! The headers exchange (AMQP 0-9-1 §3.1.3.4): a binding's arguments are compared with the message's
//! headers. `x-match` says whether `all` (the default) or `any` of them must fit, and, with
//! `-with-x`, that arguments whose names begin with `x-` count too. A void argument asks for the
//! header's presence.
//!
//! Values are compared as RabbitMQ compares them: their AMQP type does not count, so 1 as a long
//! equals 1 as a byte and 1.0 as a double, and a long string equals a byte array.
//!
//! Each message is compared with each binding. So that none takes more than [`HEADERS_STEPS_MAX`] steps, a
//! binding is refused that could make it so.
//!
//! [`HEADERS_STEPS_MAX`]: quelea_model::limits::HEADERS_STEPS_MAX

use quelea_model::{Table, Value};
use rustc_hash::FxHashMap;

use super::targets::{RouteMatches, Target};
use crate::error::BindingError;

const MATCH: &str = "x-match";

/// Bytes of a value that are compared in a step.
const VALUE_BYTES_PER_STEP: usize = 64;

/// A binding's number within its router.
pub(crate) type BindingKey = u32;

/// The bindings of a headers exchange.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    bindings: Vec<(BindingKey, Target, HeadersPattern)>,
    places: FxHashMap<BindingKey, usize>,
    /// Steps of all patterns together.
    steps_max: u64,
}

impl Headers {
    /// Adds a binding whose arguments [`HeadersPattern::parse`] has accepted.
    pub(crate) fn add(&mut self, binding: BindingKey, target: Target, pattern: HeadersPattern) {
        self.places.insert(binding, self.bindings.len());
        self.steps_max += pattern.steps;
        self.bindings.push((binding, target, pattern));
    }

    pub(crate) fn remove(&mut self, binding: BindingKey) {
        let Some(at) = self.places.remove(&binding) else { return };
        let (.., pattern) = self.bindings.swap_remove(at);
        self.steps_max -= pattern.steps;
        if let Some((moved, ..)) = self.bindings.get(at) {
            self.places.insert(*moved, at);
        }
    }

    /// Returns the steps that comparing any message's headers takes at most, beside one for each
    /// header.
    pub(crate) const fn steps_max(&self) -> u64 {
        self.steps_max
    }

    /// Finds what headers lead to, unless that takes more than `steps_max`: then it gives up. Returns the steps that
    /// it took.
    pub(crate) fn matches(&self, headers: &Table, found: &mut RouteMatches, steps_max: u64) -> u64 {
        let mut sorted: Vec<(&str, &Value)> = headers.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        let mut steps = sorted.len() as u64;
        for (_, target, pattern) in &self.bindings {
            if steps > steps_max {
                break;
            }
            if pattern.fits(&sorted, &mut steps) {
                found.add(*target);
            }
        }
        steps
    }
}

/// What a binding's arguments ask of a message's headers.
#[derive(Debug)]
pub(crate) struct HeadersPattern {
    any: bool,
    /// Sorted by name; `None` asks for presence.
    terms: Vec<(Box<str>, Option<Value>)>,
    /// What comparing it takes at most: one, and what each term takes.
    steps: u64,
}

impl HeadersPattern {
    /// Reads a binding's arguments.
    ///
    /// # Errors
    /// [`BindingError::MatchType`] or [`BindingError::MatchValue`] for a wrong `x-match`.
    pub(crate) fn parse(arguments: &Table) -> Result<Self, BindingError> {
        let (any, with_x) = match arguments.get(MATCH) {
            None => (false, false),
            Some(Value::LongString(text)) => match &text[..] {
                b"all" => (false, false),
                b"any" => (true, false),
                b"all-with-x" => (false, true),
                b"any-with-x" => (true, true),
                other => {
                    let found = String::from_utf8_lossy(other).into_owned();
                    return Err(BindingError::MatchValue { found });
                }
            },
            Some(other) => return Err(BindingError::MatchType { found: other.type_name() }),
        };
        let mut terms: Vec<(Box<str>, Option<Value>)> = arguments
            .iter()
            .filter(|(name, _)| *name != MATCH && (with_x || !name.starts_with("x-")))
            .map(|(name, value)| (Box::from(name), Some(value.clone())))
            .map(|(name, value)| (name, value.filter(|value| *value != Value::Void)))
            .collect();
        terms.sort_by(|(a, _), (b, _)| a.cmp(b));
        let steps = 1 + terms.iter().map(|(_, wanted)| steps_of(wanted.as_ref())).sum::<u64>();
        Ok(Self { any, terms, steps })
    }

    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns whether the headers fit. Goes through both sorted lists at once. Of a name that
    /// stands in both more than once, the first meets the first, the second the second. Adds to the
    /// steps.
    fn fits(&self, headers: &[(&str, &Value)], steps: &mut u64) -> bool {
        *steps += 1;
        let mut rest = headers;
        for (name, wanted) in &self.terms {
            *steps += steps_of(wanted.as_ref());
            // A message may have very many headers that no term asks for.
            rest = &rest[rest.partition_point(|(header, _)| *header < &**name)..];
            let fits = match rest {
                [(header, value), after @ ..] if *header == &**name => {
                    rest = after;
                    wanted.as_ref().is_none_or(|wanted| equal(wanted, value))
                }
                _ => false,
            };
            if fits == self.any {
                return fits;
            }
        }
        !self.any
    }
}

/// Returns the steps that comparing with a value takes at most.
fn steps_of(wanted: Option<&Value>) -> u64 {
    fn within(value: &Value) -> u64 {
        match value {
            Value::LongString(bytes) | Value::ByteArray(bytes) => {
                (bytes.len() / VALUE_BYTES_PER_STEP) as u64
            }
            Value::Array(values) => values.iter().map(|value| 1 + within(value)).sum(),
            Value::Table(table) => table.iter().map(|(_, value)| 1 + within(value)).sum(),
            _ => 0,
        }
    }
    1 + wanted.map_or(0, within)
}

/// Returns whether two values are the same but for their AMQP types.
fn equal(a: &Value, b: &Value) -> bool {
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return a.equals(b);
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Void, Value::Void) => true,
        (
            Value::LongString(a) | Value::ByteArray(a),
            Value::LongString(b) | Value::ByteArray(b),
        ) => a == b,
        (Value::Decimal(scale, a), Value::Decimal(other, b)) => (scale, a) == (other, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_type_and_equal(a, b))
        }
        (Value::Table(a), Value::Table(b)) => {
            let mut pairs = a.iter().zip(b.iter());
            a.len() == b.len() && pairs.all(|((a, x), (b, y))| a == b && same_type_and_equal(x, y))
        }
        (Value::Array(array), Value::Table(table)) | (Value::Table(table), Value::Array(array)) => {
            array.is_empty() && table.is_empty()
        }
        _ => false,
    }
}

/// Returns whether two values inside arrays and tables are the same: there the types count.
fn same_type_and_equal(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b) && equal(a, b)
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::F32(v) => Some(Self::Real(f64::from(*v))),
            Value::F64(v) => Some(Self::Real(*v)),
            Value::Timestamp(v) => Some(Self::Whole(i128::from(*v))),
            other => other.as_integer().map(|v| Self::Whole(i128::from(v))),
        }
    }

    fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => a == b,
            // The cast is exact for a whole number, and saturates beyond every integer of AMQP.
            (Self::Whole(a), Self::Real(b)) | (Self::Real(b), Self::Whole(a)) => {
                b.fract() == 0.0 && b as i128 == a
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quelea_model::QueueId;

    use super::*;

    fn table(entries: &[(&str, Value)]) -> Table {
        entries.iter().cloned().collect()
    }

    fn fits(arguments: &[(&str, Value)], headers: &[(&str, Value)]) -> bool {
        let mut exchange = Headers::default();
        let pattern = HeadersPattern::parse(&table(arguments)).unwrap();
        exchange.add(7, Target::Queue(QueueId(1)), pattern);
        let mut found = RouteMatches::default();
        exchange.matches(&table(headers), &mut found, u64::MAX);
        !found.queues.is_empty()
    }

    #[test]
    fn all_wants_every_argument_and_any_wants_one() {
        let (one, two) = (("a", Value::I32(1)), ("b", Value::text("x")));
        let all = ("x-match", Value::text("all"));
        let any = ("x-match", Value::text("any"));
        let other = ("a", Value::I32(2));
        for arguments in [vec![one.clone(), two.clone(), all], vec![two.clone(), one.clone()]] {
            assert!(fits(&arguments, &[two.clone(), one.clone(), ("c", Value::Void)]));
            assert!(!fits(&arguments, std::slice::from_ref(&one)));
            assert!(!fits(&arguments, &[other.clone(), two.clone()]));
        }
        let arguments = [one.clone(), two.clone(), any];
        assert!(fits(&arguments, &[one]));
        assert!(fits(&arguments, &[other.clone(), two]));
        assert!(!fits(&arguments, &[other]));
        assert!(!fits(&arguments, &[]));
    }

    #[test]
    fn without_arguments_all_fits_everything_and_any_nothing() {
        assert!(fits(&[], &[]));
        assert!(fits(&[("x-match", Value::text("all"))], &[("a", Value::Void)]));
        assert!(!fits(&[("x-match", Value::text("any"))], &[("a", Value::Void)]));
    }

    #[test]
    fn names_with_x_count_only_when_asked_for() {
        let argument = ("x-colour", Value::text("red"));
        let header = ("x-colour", Value::text("blue"));
        for (kind, expected) in
            [("all", true), ("any", false), ("all-with-x", false), ("any-with-x", false)]
        {
            let arguments = [argument.clone(), ("x-match", Value::text(kind))];
            assert_eq!(fits(&arguments, std::slice::from_ref(&header)), expected, "{kind}");
        }
        for kind in ["all-with-x", "any-with-x"] {
            let arguments = [argument.clone(), ("x-match", Value::text(kind))];
            assert!(fits(&arguments, std::slice::from_ref(&argument)), "{kind}");
        }
    }

    #[test]
    fn a_void_argument_asks_for_presence() {
        let arguments = [("a", Value::Void)];
        assert!(fits(&arguments, &[("a", Value::I32(5))]));
        assert!(fits(&arguments, &[("a", Value::Void)]));
        assert!(!fits(&arguments, &[("b", Value::I32(5))]));
    }

    #[test]
    fn values_are_compared_without_their_types() {
        let bytes = |text: &'static str| Value::ByteArray(Bytes::from(text));
        let equal_pairs = [
            (Value::I8(1), Value::I64(1)),
            (Value::U32(7), Value::Timestamp(7)),
            (Value::I32(1), Value::F64(1.0)),
            (Value::F32(0.5), Value::F64(0.5)),
            (Value::text("a"), bytes("a")),
            (Value::Array(vec![]), Value::Table(Table::new())),
            (Value::Array(vec![Value::I32(1)]), Value::Array(vec![Value::I32(1)])),
            (Value::Decimal(2, 5), Value::Decimal(2, 5)),
        ];
        for (a, b) in equal_pairs {
            assert!(fits(&[("a", a.clone())], &[("a", b.clone())]), "{a:?} = {b:?}");
            assert!(fits(&[("a", b.clone())], &[("a", a.clone())]), "{b:?} = {a:?}");
        }
        let different = [
            (Value::I32(1), Value::text("1")),
            (Value::Bool(true), Value::I32(1)),
            (Value::I64(i64::MAX), Value::F64(9_223_372_036_854_775_808.0)),
            (Value::F64(f64::NAN), Value::F64(f64::NAN)),
            (Value::I32(0), Value::F64(f64::INFINITY)),
            (Value::Array(vec![Value::I32(1)]), Value::Array(vec![Value::I64(1)])),
            (Value::Decimal(2, 5), Value::Decimal(1, 5)),
            (Value::I32(1), Value::Void),
        ];
        for (a, b) in different {
            assert!(!fits(&[("a", a.clone())], &[("a", b.clone())]), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn a_wrong_x_match_is_refused_with_what_was_found() {
        let error = HeadersPattern::parse(&table(&[("x-match", Value::text("some"))])).unwrap_err();
        assert_eq!(error, BindingError::MatchValue { found: "some".into() });
        let error = HeadersPattern::parse(&table(&[("x-match", Value::Bool(true))])).unwrap_err();
        assert_eq!(error, BindingError::MatchType { found: "bool" });
    }

    #[test]
    fn a_removed_binding_fits_nothing_and_the_others_stay() {
        let mut exchange = Headers::default();
        for binding in 0..5 {
            let pattern = HeadersPattern::parse(&Table::new()).unwrap();
            exchange.add(binding, Target::Queue(QueueId(binding)), pattern);
        }
        exchange.remove(1);
        exchange.remove(1);
        exchange.remove(4);
        let mut found = RouteMatches::default();
        exchange.matches(&Table::new(), &mut found, u64::MAX);
        assert_eq!(exchange.steps_max(), 3);
        found.queues.sort_unstable();
        assert_eq!(found.queues, [QueueId(0), QueueId(2), QueueId(3)]);
    }
}
