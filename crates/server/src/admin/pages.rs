//! Lists that the API answers in parts.

use serde_json::Value;

use super::AdminError;
use super::client::{Client, segment};

/// Gets a whole list, page by page; `key` is the field whose value names where a page ends.
///
/// # Errors
/// Those of the API.
pub(crate) fn pages(client: &Client, path: &str, key: &str) -> Result<Value, AdminError> {
    let get = |path: String| client.get(&path);
    Ok(Value::Array(all_pages(get, path, key)?))
}

/// Asks until a page is empty, or begins with what is known already: who answers knows of no pages then.
fn all_pages<E>(
    get: impl Fn(String) -> Result<Value, E>,
    path: &str,
    key: &str,
) -> Result<Vec<Value>, E> {
    let mut all: Vec<Value> = Vec::new();
    let mut next = path.to_owned();
    loop {
        let mut page = get(next)?;
        let Some(page) = page.as_array_mut().filter(|page| !page.is_empty()) else {
            return Ok(all);
        };
        let known = all.first().is_some_and(|known| known[key] == page[0][key]);
        let Some(last) = page.last().filter(|_| !known) else { return Ok(all) };
        let last = last[key].as_str().map_or_else(|| last[key].to_string(), str::to_owned);
        let separator = if path.contains('?') { '&' } else { '?' };
        next = format!("{path}{separator}after={}", segment(&last));
        all.append(page);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Serves numbers below a bound, so many at once.
    fn numbers(path: String, below: u64, at_once: u64) -> Result<Value, ()> {
        let after = path.split_once("after=").map(|(_, after)| after.parse::<u64>().unwrap());
        let from = after.map_or(0, |after| after + 1);
        let page = (from..below).take(at_once as usize).map(|number| json!({ "id": number }));
        Ok(page.collect())
    }

    #[test]
    fn a_list_is_put_together_of_its_pages() {
        for (below, at_once) in [(0, 2), (1, 2), (2, 2), (3, 2), (7, 3)] {
            let get = |path| numbers(path, below, at_once);
            let all = all_pages(get, "/numbers", "id").unwrap();
            let ids: Vec<_> = all.iter().filter_map(|one| one["id"].as_u64()).collect();
            assert_eq!(ids, (0..below).collect::<Vec<_>>());
        }
        let no_pages = |_| numbers("/numbers".to_owned(), 3, 5);
        assert_eq!(all_pages(no_pages, "/numbers", "id").unwrap().len(), 3);
    }
}
