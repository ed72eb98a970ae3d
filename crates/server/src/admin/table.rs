//! Prints a list of objects as a table or as JSON.

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
}

/// Prints `rows`, an array of objects: all of them as JSON, or the named `columns` as a table.
pub(crate) fn print(rows: &Value, columns: &[&str], output: Output) {
    match output {
        Output::Json => println!("{rows:#}"),
        Output::Table => print!("{}", format(rows, columns)),
    }
}

fn format(rows: &Value, columns: &[&str]) -> String {
    let mut lines = vec![columns.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()];
    for row in rows.as_array().into_iter().flatten() {
        lines.push(columns.iter().map(|column| cell(at(row, column))).collect());
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

/// A field, or one inside of another: `queue.name`.
fn at<'a>(row: &'a Value, column: &str) -> &'a Value {
    column.split('.').fold(row, |value, field| &value[field])
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => visible(text),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(","),
        other => visible(&other.to_string()),
    }
}

/// A text for the terminal. The name of a queue, say, may hold what would move the cursor or write into the window's
/// title: each such character is shown as one that does nothing.
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
