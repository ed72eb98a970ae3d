//! Queues and requests as names and labels that Kubernetes allows. All are made from what they stand for alone, so
//! that a second start of the same request meets the first one's pod.

use quelea_elastic_core::directory::RelaySpec;
use sha2::{Digest, Sha256};

/// Label of the site: the Helm release.
pub(super) const SITE: &str = "app.kubernetes.io/instance";
/// Label with [`PROGRAM`].
pub(super) const NAME: &str = "app.kubernetes.io/name";
/// Label with [`MANAGER`].
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label of the queue, see [`of_queue`].
pub(super) const QUEUE: &str = "quelea.dev/queue";
/// Label with the relay's number.
pub(super) const RELAY: &str = "quelea.dev/relay";
/// Label with the request's digest; annotation with the request itself.
pub(super) const REQUEST: &str = "quelea.dev/request";
/// Annotation with the queue's true name.
pub(super) const QUEUE_NAME: &str = "quelea.dev/queue-name";
/// Value of [`NAME`].
pub(super) const PROGRAM: &str = "quelea-relay";
/// Value of [`MANAGED_BY`], and the owner of the fields that we write.
pub(super) const MANAGER: &str = "quelea-directory";
/// Most letters of a queue's name in others: with the relay and a digest it stays below the 63 of a label.
const STEM_MAX: usize = 30;

/// Returns a queue's name as a resource's name and a label's value: itself if that is allowed, else
/// what can be kept of it and a digest.
pub(super) fn of_queue(queue: &str) -> String {
    if queue.len() <= STEM_MAX && is_label(queue) {
        return queue.to_owned();
    }
    let mut stem = String::new();
    for letter in queue.chars().map(|letter| letter.to_ascii_lowercase()) {
        if stem.len() == STEM_MAX - 11 {
            break;
        }
        if letter.is_ascii_alphanumeric() {
            stem.push(letter);
        } else if !stem.is_empty() && !stem.ends_with('-') {
            stem.push('-');
        }
    }
    let stem = stem.trim_end_matches('-');
    let stem = if stem.is_empty() { "queue" } else { stem };
    format!("{stem}-{}", digest(queue, 10))
}

/// Returns the name of the pod of one request.
pub(super) fn of_pod(site: &str, spec: &RelaySpec) -> String {
    let whole = format!("{site}\0{}\0{}\0{}", spec.queue, spec.relay.0, spec.request);
    format!("{}-r{}-{}", of_queue(&spec.queue), spec.relay.0, digest(&whole, 10))
}

/// Returns the value of the label [`REQUEST`].
pub(super) fn of_request(request: &str) -> String {
    digest(request, 16)
}

/// Returns whether a name is a DNS-1123 label, which is allowed everywhere.
pub(super) fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty()
        && name.bytes().all(|byte| inner(byte) || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn digest(text: &str, letters: usize) -> String {
    let mut hex = hex::encode(Sha256::digest(text.as_bytes()));
    hex.truncate(letters);
    hex
}

#[cfg(test)]
mod tests {
    use quelea_elastic_proto::RelayId;

    use super::*;

    #[test]
    fn a_name_that_kubernetes_allows_stays_as_it_is() {
        assert_eq!(of_queue("prices"), "prices");
        assert_eq!(of_queue("a-1"), "a-1");
    }

    #[test]
    fn other_names_become_allowed_ones_that_differ() {
        let queues = [
            "Prices",
            "prices.",
            "märkte",
            "-a",
            "a-",
            "",
            "a/b",
            "a b",
            "…",
            &"x".repeat(31),
            &"é".repeat(127),
        ];
        let mut names: Vec<String> = queues.iter().map(|queue| of_queue(queue)).collect();
        for name in &names {
            assert!(is_label(name) && name.len() <= STEM_MAX, "{name}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), queues.len());
    }

    #[test]
    fn a_pod_is_named_by_its_request() {
        let spec = |relay, request: &str| RelaySpec {
            relay: RelayId(relay),
            queue: "prices".to_owned(),
            request: request.to_owned(),
        };
        let first = of_pod("quelea", &spec(3, "one"));
        assert_eq!(first, of_pod("quelea", &spec(3, "one")));
        assert!(first.starts_with("prices-r3-"), "{first}");
        assert_ne!(first, of_pod("quelea", &spec(3, "two")));
        assert_ne!(first, of_pod("other", &spec(3, "one")));
        let longest = RelaySpec {
            relay: RelayId(u64::MAX),
            queue: "X".repeat(255),
            request: "r".repeat(500),
        };
        assert!(of_pod("quelea", &longest).len() <= 63);
    }
}
