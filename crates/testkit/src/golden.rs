//! The examples of a page of `docs/formats`, which a test compares with what is sent and read.

/// Returns the blocks `hex NAME` of a page, in its order: each name with its bytes.
///
/// # Panics
/// If a block has no end, or is not made of bytes in hexadecimal digits.
#[must_use]
pub fn examples(page: &str) -> Vec<(&str, Vec<u8>)> {
    page.split("```hex ").skip(1).map(example).collect()
}

fn example(text: &str) -> (&str, Vec<u8>) {
    let (name, text) = text.split_once('\n').expect("a name is the rest of its line");
    let (digits, _) = text.split_once("```").unwrap_or_else(|| panic!("{name} has no end"));
    let digits: String = digits.split_whitespace().collect();
    (name, hex::decode(digits).unwrap_or_else(|error| panic!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_have_their_names_and_bytes() {
        let page =
            "# Page\n```hex one\n01 0a\n  ff\n```\nText.\n```sh\nls\n```\n```hex none\n```\n";
        assert_eq!(examples(page), [("one", vec![1, 10, 255]), ("none", Vec::new())]);
    }
}
