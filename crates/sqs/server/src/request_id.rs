//! Ids of requests, which clients quote when they ask what became of one.

use uuid::Builder;

/// Returns a UUID. Ids have to differ, not to be secret.
pub(crate) fn request_id() -> String {
    Builder::from_random_bytes(fastrand::u128(..).to_be_bytes()).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_uuids_that_differ() {
        let made: HashSet<_> = (0..1000).map(|_| request_id()).collect();
        assert_eq!(made.len(), 1000);
        for id in made {
            let parts: Vec<_> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        }
    }
}
