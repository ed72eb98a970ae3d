//! Names of queues: as they are allowed, and as they stand in URLs and ARNs.

use std::sync::Arc;

use crate::QueueRef;
use crate::limits::QUEUE_NAME_LENGTH_MAX;
use crate::sigv4::RESERVED;

/// What the names of FIFO queues end with.
pub(crate) const FIFO_SUFFIX: &str = ".fifo";

/// Returns whether a standard queue may have this name.
pub(crate) fn is_standard_queue_name(name: &str) -> bool {
    (1..=QUEUE_NAME_LENGTH_MAX).contains(&name.len()) && is_word(name)
}

/// Returns whether a FIFO queue may have this name.
pub(crate) fn is_fifo_queue_name(name: &str) -> bool {
    let stem = name.strip_suffix(FIFO_SUFFIX);
    name.len() <= QUEUE_NAME_LENGTH_MAX
        && stem.is_some_and(|stem| !stem.is_empty() && is_word(stem))
}

/// Returns whether a text has only letters, digits, hyphens and underscores, of ASCII only; of
/// queue names, batch entries' ids and permissions' labels.
pub(crate) fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Returns whether a text is a word that may have dots besides: an account's name. How long one may be, whoever makes
/// accounts says.
#[must_use]
pub fn is_account_name(text: &str) -> bool {
    !text.is_empty() && text.split('.').all(is_word)
}

/// Returns the queue that a URL means: of any host, with or without one, or only a name, which is
/// one of the caller's account. `None` if it names nothing.
///
/// ```
/// # use quelea_sqs_protocol::queue_of_url;
/// let queue = queue_of_url("http://localhost:9324/000000000000/orders", "1").unwrap();
/// assert_eq!((&*queue.account, &*queue.name), ("000000000000", "orders"));
/// ```
#[must_use]
pub fn queue_of_url(url: &str, own_account: &str) -> Option<QueueRef> {
    let path = match url.split_once("://") {
        // A host without a path names no queue.
        Some((_, rest)) => rest.split_once('/')?.1,
        None => url,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    // Signatures are made of paths without such segments: `/1//q` is signed as `/1/q` is, so it must
    // mean the same queue, or none.
    let is_step = |segment: &str| matches!(segment, "" | "." | "..");
    let vanishes = |segment: &str| match segment.contains('%') {
        true => is_step(&decoded(segment)),
        false => is_step(segment),
    };
    if path.split('/').any(vanishes) {
        return None;
    }
    let (before, name) = path.rsplit_once('/').unwrap_or(("", path));
    let account = before.rsplit('/').next().filter(|account| !account.is_empty());
    let account = account.map_or_else(|| own_account.into(), decoded);
    Some(QueueRef { account, name: decoded(name) })
}

/// Decodes a part of a URL. Virtual hosts' names may hold what a URL cannot.
fn decoded(part: &str) -> Arc<str> {
    match part.contains('%') {
        true => percent_encoding::percent_decode_str(part).decode_utf8_lossy().into(),
        false => part.into(),
    }
}

/// Returns the path of a queue's URL, `/account/name`.
#[must_use]
pub fn path_of_queue(queue: &QueueRef) -> String {
    let encode = |part| percent_encoding::utf8_percent_encode(part, RESERVED);
    format!("/{}/{}", encode(&queue.account), encode(&queue.name))
}

/// Returns a queue's ARN, `arn:aws:sqs:region:account:name`.
#[must_use]
pub fn arn_of_queue(queue: &QueueRef, region: &str) -> String {
    format!("arn:aws:sqs:{region}:{}:{}", queue.account, queue.name)
}

/// Returns the queue that an ARN means; any partition and region will do, since there is one of
/// each here. `None` if it is no ARN of a queue.
#[must_use]
pub fn queue_of_arn(arn: &str) -> Option<QueueRef> {
    let mut parts = arn.splitn(6, ':');
    let (scheme, partition, service) = (parts.next()?, parts.next()?, parts.next()?);
    let (_region, account, name) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = scheme == "arn" && partition.starts_with("aws") && service == "sqs";
    (whole && !account.is_empty() && !name.is_empty() && !name.contains(':'))
        .then(|| QueueRef { account: account.into(), name: name.into() })
}

/// What a number is added to, so that it has twenty digits, as Amazon's sequence numbers have.
const SEQUENCE_BASE: u64 = 10_000_000_000_000_000_000;

/// Returns a SequenceNumber: a message's place in the order of its FIFO queue.
#[must_use]
pub fn sequence_number(number: u64) -> String {
    SEQUENCE_BASE.saturating_add(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(account: &str, name: &str) -> Option<QueueRef> {
        Some(QueueRef { account: account.into(), name: name.into() })
    }

    #[test]
    fn names_are_words_of_up_to_80_letters() {
        for good in ["a", "A-1_b", &"x".repeat(80)] {
            assert!(is_standard_queue_name(good), "{good}");
        }
        for bad in ["", "a.b", "a.fifo", "a/b", "ü", "a b", &"x".repeat(81)] {
            assert!(!is_standard_queue_name(bad), "{bad}");
        }
    }

    #[test]
    fn names_of_fifo_queues_end_with_the_suffix_within_the_80_letters() {
        for good in ["a.fifo", &format!("{}.fifo", "x".repeat(75))] {
            assert!(is_fifo_queue_name(good), "{good}");
        }
        for bad in ["a", ".fifo", "a.b.fifo", "a.FIFO", &format!("{}.fifo", "x".repeat(76))] {
            assert!(!is_fifo_queue_name(bad), "{bad}");
        }
    }

    #[test]
    fn urls_of_any_host_paths_and_bare_names_mean_a_queue() {
        for (url, account, name) in [
            ("http://localhost:9324/000000000000/q", "000000000000", "q"),
            ("https://sqs.eu-west-1.amazonaws.com/123/q.fifo", "123", "q.fifo"),
            ("http://h/queue/eu-west-1/123/q", "123", "q"),
            ("/123/q", "123", "q"),
            ("123/q/", "123", "q"),
            ("q", "own", "q"),
            ("http://h/q", "own", "q"),
            ("http://h/my%2Fhost/q", "my/host", "q"),
            ("http://h/1/q?Action=SendMessage", "1", "q"),
        ] {
            assert_eq!(queue_of_url(url, "own"), queue(account, name), "{url}");
        }
        for url in [
            "",
            "/",
            "http://h",
            "http://h/",
            "http://",
            "/111//q",
            "/111/./q",
            "/1/../q",
            "/1/%2E%2e/q",
            "http://h/1/..",
        ] {
            assert_eq!(queue_of_url(url, "own"), None, "{url}");
        }
    }

    #[test]
    fn a_path_leads_back_to_its_queue() {
        for (account, name) in [("000000000000", "q.fifo"), ("/", "a b"), ("ä/%", "q")] {
            let queue = queue(account, name).unwrap();
            let url = format!("http://h{}", path_of_queue(&queue));
            assert_eq!(queue_of_url(&url, "own"), Some(queue), "{url}");
        }
    }

    #[test]
    fn arns_lead_to_queues_and_back() {
        let orders = queue("123", "orders").unwrap();
        let arn = arn_of_queue(&orders, "eu-west-1");
        assert_eq!(arn, "arn:aws:sqs:eu-west-1:123:orders");
        assert_eq!(queue_of_arn(&arn), Some(orders));
        assert_eq!(queue_of_arn("arn:aws-cn:sqs:x:1:q"), queue("1", "q"));
        for bad in [
            "",
            "dummy",
            "arn:aws:sns:x:1:t",
            "arn:aws:sqs:x:1",
            "arn:aws:sqs:x:1:",
            "arn:aws:sqs:x:1:q:z",
        ] {
            assert_eq!(queue_of_arn(bad), None, "{bad}");
        }
    }
}
