//! The lists that are shown, each with its columns and the orders that it can have.

use serde_json::Value;

use crate::admin::table::visible;

/// Rows that are asked for: more than a terminal shows, and less than a broker may have.
const ROWS_MAX: usize = 200;

/// What stands for the account in a path.
const ACCOUNT: &str = "{account}";

/// It is one object.
const CLUSTER: &str = "/quelea/v1/cluster";

/// Of these each costs some requests to Cassandra.
const REPLICATED_ROWS_MAX: usize = 40;

/// A kind of object.
#[derive(Debug)]
pub(super) struct List {
    pub(super) title: &'static str,
    /// Where the API has them; `{account}` stands for the account that is looked at.
    path: &'static str,
    rows_max: usize,
    pub(super) columns: &'static [Column],
    /// What they are sorted by, the first unless another is asked for: the name, and what the API calls it.
    pub(super) orders: &'static [(&'static str, &'static str)],
}

/// A column of a list.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// A JSON pointer.
    place: &'static str,
    pub(super) form: Form,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// What the object is called.
    Name,
    Text,
    Count,
    Rate,
    Bytes,
}

const fn name(title: &'static str, place: &'static str) -> Column {
    Column { title, place, form: Form::Name }
}

const fn text(title: &'static str, place: &'static str) -> Column {
    Column { title, place, form: Form::Text }
}

const fn count(title: &'static str, place: &'static str) -> Column {
    Column { title, place, form: Form::Count }
}

const fn rate(title: &'static str, place: &'static str) -> Column {
    Column { title, place, form: Form::Rate }
}

const fn bytes(title: &'static str, place: &'static str) -> Column {
    Column { title, place, form: Form::Bytes }
}

pub(super) const LISTS: [List; 6] = [
    List {
        title: "Queues",
        path: "/api/queues",
        rows_max: ROWS_MAX,
        columns: &[
            text("vhost", "/vhost"),
            name("queue", "/name"),
            count("ready", "/messages_ready"),
            count("unacked", "/messages_unacknowledged"),
            count("consumers", "/consumers"),
            rate("in/s", "/message_stats/publish_details/rate"),
            rate("out/s", "/message_stats/deliver_get_details/rate"),
            rate("acked/s", "/message_stats/ack_details/rate"),
            bytes("memory", "/memory"),
        ],
        orders: &[
            ("ready", "messages_ready"),
            ("unacked", "messages_unacknowledged"),
            ("in/s", "message_stats.publish_details.rate"),
            ("out/s", "message_stats.deliver_get_details.rate"),
            ("memory", "memory"),
        ],
    },
    List {
        title: "Connections",
        path: "/api/connections",
        rows_max: ROWS_MAX,
        columns: &[
            text("user", "/user"),
            text("vhost", "/vhost"),
            name("connection", "/name"),
            text("product", "/client_properties/product"),
            count("channels", "/channels"),
            bytes("in/s", "/recv_oct_details/rate"),
            bytes("out/s", "/send_oct_details/rate"),
            bytes("waiting", "/send_pend"),
        ],
        orders: &[
            ("waiting", "send_pend"),
            ("channels", "channels"),
            ("in/s", "recv_oct_details.rate"),
            ("out/s", "send_oct_details.rate"),
        ],
    },
    List {
        title: "Elastic queues",
        path: "/quelea/v1/elastic/queues",
        rows_max: ROWS_MAX,
        columns: &[
            name("queue", "/name"),
            count("relays", "/relays"),
            count("producers", "/producers"),
            count("listeners", "/listeners"),
            rate("in/s", "/messages_in_per_s"),
            rate("out/s", "/messages_out_per_s"),
            rate("cores", "/cpu"),
            count("moves", "/moves_done"),
        ],
        orders: &[],
    },
    List {
        title: "Replicated queues",
        path: "/quelea/v1/replicated/{account}",
        rows_max: REPLICATED_ROWS_MAX,
        columns: &[
            name("queue", "/name"),
            count("visible", "/messages_visible"),
            count("in flight", "/messages_in_flight"),
            count("delayed", "/messages_delayed"),
            count("oldest, s", "/oldest_message_age_s"),
            count("K", "/order_hint/k"),
        ],
        orders: &[],
    },
    List {
        title: "Front-ends",
        path: CLUSTER,
        rows_max: ROWS_MAX,
        columns: &[
            name("front-end", "/id"),
            text("address", "/address"),
            text("alive", "/is_alive"),
            count("silent, ms", "/silent_for_ms"),
        ],
        orders: &[],
    },
    List {
        title: "Datagram peers",
        path: "/quelea/v1/datagram/peers",
        rows_max: ROWS_MAX,
        columns: &[
            name("peer", "/address"),
            count("mailbox", "/mailbox"),
            text("mode", "/mode"),
            count("messages", "/messages"),
            count("lost", "/lost_messages"),
            count("full", "/mailbox_full_messages"),
            count("repaired", "/repaired"),
            count("silent, ms", "/silent_for_ms"),
        ],
        orders: &[],
    },
];

impl List {
    /// Returns whether the rows are an account's.
    pub(super) fn is_of_account(&self) -> bool {
        self.path.contains(ACCOUNT)
    }

    /// Returns where the API has the first of the rows in an order; the largest are first.
    pub(super) fn path(&self, order: usize, account: &str) -> String {
        let (path, rows_max) = (self.path.replace(ACCOUNT, account), self.rows_max);
        match self.orders.get(order) {
            Some((_, column)) => {
                format!("{path}?page=1&page_size={rows_max}&sort={column}&sort_reverse=true")
            }
            None if self.path == CLUSTER => path,
            None => format!("{path}?limit={rows_max}"),
        }
    }

    /// Returns the objects of an answer: a page of them, a list, or one with those of the cluster.
    pub(super) fn rows(answer: Value) -> Vec<Value> {
        match answer {
            Value::Array(rows) => rows,
            Value::Object(mut page) => {
                let rows = page.remove("items").or_else(|| page.remove("front_ends"));
                rows.map(Self::rows).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

impl Column {
    /// Returns what stands in it for an object.
    pub(super) fn cell(&self, row: &Value) -> String {
        shown(row.pointer(self.place).unwrap_or(&Value::Null), self.form)
    }
}

/// Returns a value in its form; nothing for null.
pub(super) fn shown(value: &Value, form: Form) -> String {
    match (value, form) {
        (Value::Null, _) => String::new(),
        // A queue's name may hold what would move the cursor.
        (Value::String(text), _) => visible(text),
        (Value::Number(number), Form::Rate) => {
            format!("{:.1}", number.as_f64().unwrap_or_default())
        }
        (Value::Number(number), Form::Bytes) => {
            in_bytes(number.as_f64().unwrap_or_default() as u64)
        }
        (other, _) => other.to_string(),
    }
}

/// Returns the bytes in the largest unit of which there is one at least, from KiB on with one
/// decimal.
fn in_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut amount, mut unit) = (bytes as f64, 0);
    while amount >= 1_024.0 && unit + 1 < UNITS.len() {
        amount /= 1_024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{amount:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_in_their_forms() {
        assert_eq!(shown(&json!(1_536), Form::Bytes), "1.5 KiB");
        assert_eq!(shown(&json!(1_023), Form::Bytes), "1023 B");
        assert_eq!(shown(&json!(2_048.5), Form::Bytes), "2.0 KiB");
        assert_eq!(shown(&json!(0.25), Form::Rate), "0.2");
        assert_eq!(shown(&json!(7), Form::Count), "7");
        assert_eq!(shown(&json!(null), Form::Count), "");
        assert_eq!(shown(&json!("a\u{1b}[2Jb"), Form::Text), "a\u{fffd}[2Jb");
    }

    #[test]
    fn the_api_sorts_where_it_can() {
        assert_eq!(
            LISTS[0].path(1, ""),
            "/api/queues?page=1&page_size=200&sort=messages_unacknowledged&sort_reverse=true"
        );
        assert_eq!(LISTS[2].path(0, ""), "/quelea/v1/elastic/queues?limit=200");
        assert_eq!(LISTS[3].path(0, "a%2Fb"), "/quelea/v1/replicated/a%2Fb?limit=40");
        assert_eq!(LISTS[4].path(0, ""), "/quelea/v1/cluster");
    }

    #[test]
    fn rows_come_as_a_list_a_page_or_within_the_cluster() {
        for answer in [json!([{}, {}]), json!({"items": [{}, {}]}), json!({"front_ends": [{}, {}]})]
        {
            assert_eq!(List::rows(answer).len(), 2);
        }
        assert!(List::rows(json!("no")).is_empty());
    }
}
