//! The two texts of a metrics page: OpenMetrics for who asks for it, as Prometheus does, and for everybody else
//! Prometheus' text format, which is older and which `promtool check metrics` and most other tools read.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// How a page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Version 1.0.0.
    OpenMetrics,
    /// Prometheus' text format, version 0.0.4.
    Text,
}

impl Format {
    /// Returns OpenMetrics if the request names it, whatever it would like better.
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds = accepted.flat_map(|value| value.split(','));
        let named = |kind: &str| kind.split(';').next().is_some_and(is_openmetrics);
        if kinds.any(named) { Self::OpenMetrics } else { Self::Text }
    }

    /// Returns the content type that the page says it has.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts a page that was written as OpenMetrics to this format.
    pub(super) fn of(self, page: String) -> String {
        match self {
            Self::OpenMetrics => page,
            Self::Text => to_text(&page),
        }
    }
}

fn is_openmetrics(kind: &str) -> bool {
    kind.trim().eq_ignore_ascii_case("application/openmetrics-text")
}

/// Converts a page from OpenMetrics to text. The samples are the same in both; what is said of a
/// family names its samples: with the `_total` of a counter and the `_info` of an info, which is a
/// gauge. There are no units and no end.
fn to_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + page.len() / 16);
    // A family's help stands before its type.
    let mut help = None;
    for line in page.lines() {
        if let Some(words) = line.strip_prefix("# HELP ") {
            help = words.split_once(' ');
        } else if let Some(words) = line.strip_prefix("# TYPE ") {
            let (name, kind) = words.split_once(' ').unwrap_or((words, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                text.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            text.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if !line.starts_with('#') {
            text.extend([line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn families_are_announced_by_the_names_of_their_samples() {
        let page = "# HELP q_sent Messages, all of them.\n# TYPE q_sent counter\nq_sent_total 3\n\
            # HELP q_log_bytes Size.\n# TYPE q_log_bytes gauge\n# UNIT q_log_bytes bytes\nq_log_bytes 8\n\
            # HELP q_build What it is.\n# TYPE q_build info\nq_build_info{version=\"# 1\"} 1\n\
            # HELP q_wait_seconds Wait.\n# TYPE q_wait_seconds histogram\nq_wait_seconds_sum 0.5\n\
            q_wait_seconds_count 1\nq_wait_seconds_bucket{le=\"+Inf\"} 1\n# EOF\n";
        let text = "# HELP q_sent_total Messages, all of them.\n# TYPE q_sent_total counter\nq_sent_total 3\n\
            # HELP q_log_bytes Size.\n# TYPE q_log_bytes gauge\nq_log_bytes 8\n\
            # HELP q_build_info What it is.\n# TYPE q_build_info gauge\nq_build_info{version=\"# 1\"} 1\n\
            # HELP q_wait_seconds Wait.\n# TYPE q_wait_seconds histogram\nq_wait_seconds_sum 0.5\n\
            q_wait_seconds_count 1\nq_wait_seconds_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(Format::Text.of(page.to_owned()), text);
        assert_eq!(Format::OpenMetrics.of(page.to_owned()), page);
    }

    #[test]
    fn openmetrics_is_for_who_names_it() {
        let of = |accepted: &[&'static str]| {
            let values = accepted.iter().map(|value| (ACCEPT, HeaderValue::from_static(value)));
            Format::wanted(&values.collect())
        };
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accepted, format) in [
            (&[][..], Format::Text),
            (&["*/*"], Format::Text),
            (&["text/plain;version=0.0.4"], Format::Text),
            (&["text/plain, Application/OpenMetrics-Text; version=0.0.1"], Format::OpenMetrics),
            (&["text/plain", "application/openmetrics-text"], Format::OpenMetrics),
            (&[prometheus], Format::OpenMetrics),
        ] {
            assert_eq!(of(accepted), format, "{accepted:?}");
        }
    }
}
