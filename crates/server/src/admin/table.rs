//! Prints a list of objects as a table or as JSON.

use jiff::Timestamp;
use serde_json::Value;

use crate::stdout::{self, print_line};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
}

/// Prints `rows`, an array of objects: all of them as JSON, or the named `columns` as a table.
pub(crate) fn print(rows: &Value, columns: &[&str], output: Output) {
    match output {
        Output::Json => print_line!("{rows:#}"),
        Output::Table => stdout::print(format_args!("{}", format(rows, columns))),
    }
}

fn format(rows: &Value, columns: &[&str]) -> String {
    let mut lines = vec![columns.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()];
    for row in rows.as_array().into_iter().flatten() {
        lines.push(columns.iter().map(|column| cell_of(column, at(row, column))).collect());
    }
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns a field, or one inside of another: `queue.name`.
fn at<'a>(row: &'a Value, column: &str) -> &'a Value {
    column.split('.').fold(row, |value, field| &value[field])
}

/// All fields of an object, a line each, those of fields of it by their paths.
pub(crate) fn print_fields(object: &Value, output: Output) {
    match output {
        Output::Json => print_line!("{object:#}"),
        Output::Table => {
            let mut fields = Vec::new();
            flatten("", object, &mut fields);
            let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            for (name, text) in fields {
                print_line!("{}", format!("{name:width$}  {text}").trim_end());
            }
        }
    }
}

fn flatten(path: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let name = visible(name);
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(&path, value, fields);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            for (number, value) in values.iter().enumerate() {
                flatten(&format!("{path}.{number}"), value, fields);
            }
        }
        value => {
            let name = path.rsplit('.').next().unwrap_or_default();
            fields.push((path.to_owned(), cell_of(name, value)));
        }
    }
}

/// Fields that hold milliseconds since 1970.
const TIMES: [&str; 3] = ["timestamp", "unix_ms", "connected_at"];

fn cell_of(column: &str, value: &Value) -> String {
    let is_time = TIMES.contains(&column);
    let time =
        value.as_i64().filter(|_| is_time).and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| cell(value), |time| format!("{time:.3}"))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => visible(text),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(","),
        other => visible(&other.to_string()),
    }
}

/// Returns a text for the terminal. The name of a queue, say, may hold what would move the cursor
/// or write into the window's title: each such character is shown as one that does nothing.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_a_field_has_a_column() {
        let rows = json!([{"queue": {"name": "q"}}, {}]);
        assert_eq!(format(&rows, &["queue.name"]), "queue.name\nq\n\n");
    }

    #[test]
    fn nothing_in_a_cell_reaches_the_terminal_but_text() {
        let rows = json!([{"name": "a\u{1b}[2Jb\u{9b}\n", "tags": ["\u{7}"], "arguments": {"\u{9b}": "\u{1b}"}}]);
        let text = format(&rows, &["name", "tags", "arguments"]);
        let cells = text.lines().nth(1).unwrap();
        assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
        assert!(cells.starts_with("a\u{fffd}[2Jb\u{fffd}\u{fffd}  \u{fffd} "), "{cells:?}");
    }

    #[test]
    fn a_time_is_one_that_people_read() {
        let rows = json!([{"timestamp": 1_795_891_800_599_u64, "age_ms": 1_795_891_800_599_u64}, {"timestamp": null}]);
        assert_eq!(
            format(&rows, &["timestamp", "age_ms"]),
            "timestamp                 age_ms\n2026-11-28T18:50:00.599Z  1795891800599\n\n"
        );
    }

    #[test]
    fn fields_of_fields_are_named_by_their_paths() {
        let object = json!({
            "name": "q\u{1b}", "stats": {"ack": {"rate": 0.5}}, "tags": ["a", "b"], "consumers": [{"tag": "x"}], "none": {},
        });
        let mut fields = Vec::new();
        flatten("", &object, &mut fields);
        fields.sort();
        let named = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let expected = [
            named("consumers.0.tag", "x"),
            named("name", "q\u{fffd}"),
            named("stats.ack.rate", "0.5"),
            named("tags", "a,b"),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = json!([
            {"name": "orders", "messages": 12, "tags": ["a", "b"]},
            {"name": "x", "messages": null}
        ]);
        assert_eq!(
            format(&rows, &["name", "messages", "tags"]),
            "name    messages  tags\norders  12        a,b\nx\n"
        );
    }
}
