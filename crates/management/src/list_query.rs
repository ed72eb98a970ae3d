//! What a list is asked for beside its path: a page of it, names that fit, an order, columns. It is all done here, so that
//! 10,000 queues do not travel for the hundred that are looked at.

use std::cmp::Ordering;
use std::ops::Range;

use axum::Json;
use quelea_broker::{ListKey, ListedName};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::JsonAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::limits::{COLUMNS_MAX, NAME_FILTER_BYTES_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use crate::listed::{Row, array};

/// Bytes that a compiled name filter may take.
const FILTER_COMPILED_BYTES_MAX: usize = 256 * 1024;

/// As it stands behind `?`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct RawListQuery {
    /// From 1; absent: the whole list, as an array.
    #[schemars(with = "Option<u32>", range(min = 1))]
    page: Option<String>,
    #[schemars(with = "Option<u32>", range(min = 1, max = PAGE_SIZE_MAX))]
    page_size: Option<String>,
    /// Only objects whose name has this in it.
    #[schemars(length(max = NAME_FILTER_BYTES_MAX))]
    name: Option<String>,
    /// `name` is a regular expression.
    #[schemars(with = "Option<bool>")]
    use_regex: Option<String>,
    /// A field, such as `messages`, or one in it, such as `message_stats.publish`.
    sort: Option<String>,
    #[schemars(with = "Option<bool>")]
    sort_reverse: Option<String>,
    /// Fields that are answered, separated by commas.
    columns: Option<String>,
}

/// The same, checked.
#[derive(Debug, Default)]
pub(crate) struct ListQuery {
    page: Option<Page>,
    filter: Option<NameFilter>,
    sort: Option<Column>,
    is_reversed: bool,
    columns: Columns,
}

/// As it stands behind `?` where one object is asked for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct RawColumns {
    /// Fields that are answered, separated by commas.
    columns: Option<String>,
}

/// Which fields are answered; all unless they are named.
#[derive(Debug, Default)]
pub(crate) struct Columns(Option<Vec<Column>>);

#[derive(Clone, Copy, Debug)]
struct Page {
    /// From 1.
    number: usize,
    size: usize,
}

#[derive(Debug)]
enum NameFilter {
    /// In lower case, and so is what it is looked for in.
    Contains(String),
    Fits(Regex),
}

impl Default for Page {
    fn default() -> Self {
        Self { number: 1, size: PAGE_SIZE_DEFAULT }
    }
}

/// Of how many a page is.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    total: usize,
    filtered: usize,
    page: Page,
}

impl Counted {
    /// Returns the places of the objects on the page.
    fn places(self) -> Result<Range<usize>, ApiError> {
        let Self { filtered, page: Page { number, size }, .. } = self;
        let pages = filtered.div_ceil(size);
        // The first is there though it may be empty.
        if number > pages.max(1) {
            let reason = format!("page {number} of {pages}, page_size {size}, {filtered} objects");
            return Err(ApiError::PageOutOfRange(reason));
        }
        let from = ((number - 1) * size).min(filtered);
        Ok(from..(from + size).min(filtered))
    }
}

/// A field, and fields in it: `message_stats.publish`.
type Column = Vec<String>;

impl ListQuery {
    /// Parses what a request asks for.
    ///
    /// # Errors
    /// As [`ListQuery::parse`].
    pub(crate) fn of<S>(call: &Call<S>) -> Result<Self, ApiError> {
        Self::parse(call.query()?)
    }

    /// # Errors
    /// [`ApiError::BadRequest`] with the parameter, its limit and its value.
    fn parse(raw: RawListQuery) -> Result<Self, ApiError> {
        let flag = |field: &str, text: Option<String>| match text.as_deref() {
            None | Some("" | "false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(bad(format!("{field} must be true or false, it is {other:?}"))),
        };
        let use_regex = flag("use_regex", raw.use_regex)?;
        Ok(Self {
            page: page(raw.page, raw.page_size)?,
            filter: raw
                .name
                .filter(|name| !name.is_empty())
                .map(|n| filter(n, use_regex))
                .transpose()?,
            sort: raw.sort.filter(|sort| !sort.is_empty()).map(|sort| column(&sort)),
            is_reversed: flag("sort_reverse", raw.sort_reverse)?,
            columns: Columns::parse(raw.columns)?,
        })
    }

    /// Returns whether it is a page in the order of the names: no other field has to be known of
    /// those that are not on it.
    pub(crate) fn is_found_by_names(&self) -> bool {
        self.page.is_some() && self.sort.as_ref().is_none_or(|sort| **sort == ["name"])
    }

    pub(crate) const fn is_reversed(&self) -> bool {
        self.is_reversed
    }

    /// Returns the list, or the page of it, as it is asked for. `all` are in the order of their
    /// names.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] of a page behind the last.
    pub(crate) fn answer<S, T: Row<S>>(&self, state: &S, mut all: Vec<T>) -> JsonAnswer {
        let total = all.len();
        if let Some(filter) = &self.filter {
            all.retain(|object| filter.fits(object.name()));
        }
        let order = self.order(state, &all);
        let objects = |places: &[usize]| places.iter().map(|place| &all[*place]).collect();
        let Some(page) = self.page else {
            let all: Vec<&T> = objects(&order);
            return Ok(array(
                all.into_iter().map(|object| self.columns.shown(object.to_json(state))),
            ));
        };
        let counted = Counted { total, filtered: order.len(), page };
        let objects: Vec<&T> = objects(&order[counted.places()?]);
        Ok(self.page(state, counted, objects.into_iter()))
    }

    /// Returns what is on a page that is found by names, in their order.
    ///
    /// # Errors
    /// As [`ListQuery::answer`].
    pub(crate) fn page_of(
        &self,
        mut names: Vec<ListedName>,
    ) -> Result<(Counted, Vec<ListKey>), ApiError> {
        let total = names.len();
        if let Some(filter) = &self.filter {
            names.retain(|one| filter.fits(one.name.as_str()));
        }
        if self.sort.is_some() {
            names.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let filtered = names.len();
        let counted = Counted { total, filtered, page: self.page.unwrap_or_default() };
        let mut places = counted.places()?;
        if self.is_reversed {
            places = filtered - places.end..filtered - places.start;
        }
        Ok((counted, names[places].iter().map(|one| one.key).collect()))
    }

    /// Returns a page with what is on it.
    pub(crate) fn page<'a, S, T: Row<S> + 'a>(
        &self,
        state: &S,
        counted: Counted,
        objects: impl Iterator<Item = &'a T>,
    ) -> Json<Value> {
        let items: Vec<_> =
            objects.map(|object| self.columns.shown(object.to_json(state))).collect();
        let Counted { total, filtered, page } = counted;
        Json(json!({
            "total_count": total,
            "filtered_count": filtered,
            "item_count": items.len(),
            "page": page.number,
            "page_size": page.size,
            "page_count": filtered.div_ceil(page.size),
            "items": items,
        }))
    }

    /// Returns the places of all objects in the order that is wanted.
    fn order<S, T: Row<S>>(&self, state: &S, all: &[T]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..all.len()).collect();
        if let Some(column) = &self.sort {
            let key = |object: &T| {
                object.column(state, column).unwrap_or_else(|| at(object.to_json(state), column))
            };
            let keys: Vec<Value> = all.iter().map(key).collect();
            // Stable: what is alike stays in the order of its names.
            order.sort_by(|a, b| compare(&keys[*a], &keys[*b]));
        }
        if self.is_reversed {
            order.reverse();
        }
        order
    }
}

impl Columns {
    /// Parses which columns a request for one object asks for.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] with the limit and how many they are.
    pub(crate) fn of<S>(call: &Call<S>) -> Result<Self, ApiError> {
        Self::parse(call.query::<RawColumns>()?.columns)
    }

    fn parse(raw: Option<String>) -> Result<Self, ApiError> {
        let Some(text) = raw.filter(|text| !text.is_empty()) else { return Ok(Self(None)) };
        let columns: Vec<_> = text.split(',').map(column).collect();
        match columns.len() {
            count if count > COLUMNS_MAX => {
                Err(bad(format!("columns are at most {COLUMNS_MAX}, they are {count}")))
            }
            _ => Ok(Self(Some(columns))),
        }
    }

    /// Returns the part of an object that is answered.
    pub(crate) fn shown(&self, object: Value) -> Value {
        let Some(columns) = &self.0 else { return object };
        let mut shown = Map::new();
        for column in columns {
            copy(&object, &mut shown, column);
        }
        Value::Object(shown)
    }
}

impl NameFilter {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Contains(part) => name.to_lowercase().contains(part),
            Self::Fits(pattern) => pattern.is_match(name),
        }
    }
}

fn bad(reason: String) -> ApiError {
    ApiError::BadRequest(reason)
}

/// Parses which page is asked for; `page_size` alone is no page.
fn page(number: Option<String>, size: Option<String>) -> Result<Option<Page>, ApiError> {
    let parse = |field: &str, text: String, most: usize| match text.parse() {
        Ok(value) if (1..=most).contains(&value) => Ok(value),
        _ => Err(bad(format!("{field} must be from 1 to {most}, it is {text:?}"))),
    };
    let size = size.map(|text| parse("page_size", text, PAGE_SIZE_MAX)).transpose()?;
    let Some(number) = number else { return Ok(None) };
    let number = parse("page", number, u32::MAX as usize)?;
    Ok(Some(Page { number, size: size.unwrap_or(PAGE_SIZE_DEFAULT) }))
}

fn filter(name: String, use_regex: bool) -> Result<NameFilter, ApiError> {
    if name.len() > NAME_FILTER_BYTES_MAX {
        let len = name.len();
        return Err(bad(format!("name has {len} bytes, the limit is {NAME_FILTER_BYTES_MAX}")));
    }
    if !use_regex {
        return Ok(NameFilter::Contains(name.to_lowercase()));
    }
    let pattern = RegexBuilder::new(&name)
        .case_insensitive(true)
        .size_limit(FILTER_COMPILED_BYTES_MAX)
        .build();
    pattern.map(NameFilter::Fits).map_err(|error| bad(format!("name is no pattern: {error}")))
}

fn column(text: &str) -> Column {
    text.trim().split('.').map(str::to_owned).collect()
}

fn at(mut object: Value, column: &[String]) -> Value {
    for field in column {
        object = object.get_mut(field).map(Value::take).unwrap_or_default();
    }
    object
}

fn copy(from: &Value, to: &mut Map<String, Value>, column: &[String]) {
    let [field, rest @ ..] = column else { return };
    let Some(value) = from.get(field) else { return };
    if rest.is_empty() {
        to.insert(field.clone(), value.clone());
        return;
    }
    let inner = to.entry(field.clone()).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        copy(value, inner, rest);
    }
}

/// Compares two values: nothing comes first, then booleans, then numbers, then texts, then the
/// rest, which is alike.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let of = |number: &serde_json::Number| number.as_f64().unwrap_or_default();
            of(a).total_cmp(&of(b))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

const fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: RawListQuery) -> Result<ListQuery, String> {
        ListQuery::parse(raw).map_err(|error| match error {
            ApiError::BadRequest(reason) => reason,
            other => panic!("{other:?}"),
        })
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn what_cannot_be_asked_for_is_named_with_its_limit() {
        let cases = [
            (
                RawListQuery { page: some("0"), ..RawListQuery::default() },
                "page must be from 1 to 4294967295, it is \"0\"",
            ),
            (
                RawListQuery { page: some("1"), page_size: some("501"), ..RawListQuery::default() },
                "page_size must be from 1 to 500, it is \"501\"",
            ),
            (
                RawListQuery { sort_reverse: some("yes"), ..RawListQuery::default() },
                "sort_reverse must be true or false, it is \"yes\"",
            ),
            (
                RawListQuery {
                    name: some("("),
                    use_regex: some("true"),
                    ..RawListQuery::default()
                },
                "name is no pattern: regex parse error",
            ),
            (
                RawListQuery {
                    name: some("x{1000}{1000}"),
                    use_regex: some("true"),
                    ..RawListQuery::default()
                },
                "name is no pattern: ",
            ),
            (
                RawListQuery { columns: Some("a,".repeat(64)), ..RawListQuery::default() },
                "columns are at most 64, they are 65",
            ),
        ];
        for (raw, problem) in cases {
            let reason = query(raw).unwrap_err();
            assert!(reason.starts_with(problem), "{reason}");
        }
    }

    #[test]
    fn columns_are_found_in_depth_and_the_rest_left_out() {
        let columns = some("name, stats.publish.rate,stats.ack,none,name.x");
        let query = query(RawListQuery { columns, ..RawListQuery::default() }).unwrap();
        let object =
            json!({"name": "q", "stats": {"publish": {"rate": 2.5, "n": 1}, "ack": 3}, "x": 1});
        let shown = json!({"name": "q", "stats": {"publish": {"rate": 2.5}, "ack": 3}});
        assert_eq!(query.columns.shown(object), shown);
    }

    #[test]
    fn names_are_searched_whatever_their_case() {
        let fits = |name: &str, use_regex, text: &str| {
            filter(name.to_owned(), use_regex).unwrap().fits(text)
        };
        assert!(fits("Ord", false, "my.ORDERS"));
        assert!(!fits("o.d", false, "orders"));
        assert!(fits("^o.d", true, "Orders"));
        assert!(!fits("^r", true, "orders"));
    }

    #[test]
    fn values_of_different_kinds_have_an_order() {
        let mut values =
            vec![json!("b"), json!(10), json!(null), json!("a"), json!(9.5), json!(true)];
        values.sort_by(compare);
        assert_eq!(
            values,
            [json!(null), json!(true), json!(9.5), json!(10), json!("a"), json!("b")]
        );
    }
}
