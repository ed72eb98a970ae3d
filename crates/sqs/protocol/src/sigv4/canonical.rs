//! The canonical request: the one form that both ends bring a request into before they hash it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::digest::Digest32;
use super::{ALGORITHM, HttpRequest, SignatureError};

/// A canonical request. Header values may be any bytes, so it is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CanonicalRequest(Vec<u8>);

impl CanonicalRequest {
    /// Builds it. `query` is canonical already, `signed_headers` is a list like `host;x-amz-date`,
    /// sorted and in small letters.
    pub(crate) fn new(
        request: &HttpRequest<'_>,
        query: &str,
        signed_headers: &str,
        payload_hash: &str,
    ) -> Result<Self, SignatureError> {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(request.method.as_bytes());
        out.push(b'\n');
        path_into(&mut out, request.path);
        out.push(b'\n');
        out.extend_from_slice(query.as_bytes());
        out.push(b'\n');
        for name in signed_headers.split(';') {
            header_into(&mut out, request, name)?;
        }
        out.push(b'\n');
        out.extend_from_slice(signed_headers.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(payload_hash.as_bytes());
        Ok(Self(out))
    }

    /// Returns the string to sign for it: `timestamp` like `20150830T123600Z`, `scope` without the
    /// key's id.
    pub(crate) fn string_to_sign(&self, timestamp: &str, scope: &str) -> String {
        format!("{ALGORITHM}\n{timestamp}\n{scope}\n{}", Digest32::of(&self.0))
    }

    /// Returns it as text, for people.
    pub(crate) fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// The path without dots and doubled slashes, every byte encoded once more than it came: that is the
/// rule of all services but S3.
fn path_into(out: &mut Vec<u8>, path: &str) {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    for segment in &segments {
        out.push(b'/');
        encode_into(out, segment.as_bytes());
    }
    if segments.is_empty() || path.ends_with('/') {
        out.push(b'/');
    }
}

/// Appends `name:value,value\n`: each value trimmed, blanks within it made one space.
fn header_into(
    out: &mut Vec<u8>,
    request: &HttpRequest<'_>,
    name: &str,
) -> Result<(), SignatureError> {
    out.extend_from_slice(name.as_bytes());
    let mut separator = b':';
    for value in request.values(name) {
        out.push(separator);
        separator = b',';
        let words = value.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty());
        for (at, word) in words.enumerate() {
            if at > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(word);
        }
    }
    if separator == b':' {
        return Err(SignatureError::SignedHeaderAbsent { name: name.to_owned() });
    }
    out.push(b'\n');
    Ok(())
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

/// Returns the query with every name and value decoded and encoded anew, sorted; parameters called
/// `without` are left out.
pub(crate) fn canonical_query(query: &str, without: &str) -> Result<String, SignatureError> {
    if query.is_empty() {
        return Ok(String::new());
    }
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)?;
        if name != without.as_bytes() {
            pairs.push((encoded(&name), encoded(&decode(value)?)));
        }
    }
    pairs.sort_unstable();
    let mut out = String::with_capacity(query.len() + 16);
    for (name, value) in &pairs {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(name);
        out.push('=');
        out.push_str(value);
    }
    Ok(out)
}

/// Decodes the percent-encoding of a name or a value in a query. A plus stands for a blank, as in
/// forms.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, SignatureError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                let byte = digits
                    .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(byte) = byte else {
                    return Err(SignatureError::MalformedQuery { part: text.to_owned() });
                };
                out.push(byte);
                rest = &rest[2..];
            }
            b'+' => out.push(b' '),
            byte => out.push(*byte),
        }
    }
    Ok(out)
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, RESERVED).to_string()
}

/// Percent-encoding of all but the unreserved characters of RFC 3986.
pub(crate) fn encode_into(out: &mut Vec<u8>, bytes: &[u8]) {
    percent_encode(bytes, RESERVED).for_each(|part| out.extend_from_slice(part.as_bytes()));
}

/// All but the unreserved characters of RFC 3986, section 2.3.
pub(crate) const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> String {
        let mut out = Vec::new();
        path_into(&mut out, path);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn paths_are_normalised_and_encoded_once_more() {
        let cases = [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("/./", "/"),
            ("/..", "/"),
            ("/a/../../b", "/b"),
            ("/a//b/", "/a/b/"),
            ("/a/./b", "/a/b"),
            ("/000000000000/q.fifo", "/000000000000/q.fifo"),
            ("/my%20queue", "/my%2520queue"),
            ("/my queue", "/my%20queue"),
            ("/ሴ/$~", "/%E1%88%B4/%24~"),
        ];
        for (given, expected) in cases {
            assert_eq!(path(given), expected, "{given}");
        }
    }

    #[test]
    fn queries_are_decoded_encoded_and_sorted() {
        let cases = [
            ("", ""),
            ("a", "a="),
            ("b=2&a=1&a=0&A=3", "A=3&a=0&a=1&b=2"),
            ("a=%7e%2F&&", "a=~%2F"),
            ("a=x+y%20z", "a=x%20y%20z"),
            ("a=b=c", "a=b%3Dc"),
            ("p-3=3&p=2", "p=2&p-3=3"),
            ("X-Amz-Signature=12&b=1", "b=1"),
            ("X-Amz-Signature%3D=12", "X-Amz-Signature%3D=12"),
            ("%58-Amz-Signature=12&b=1", "b=1"),
        ];
        for (given, expected) in cases {
            assert_eq!(canonical_query(given, "X-Amz-Signature").unwrap(), expected, "{given}");
        }
        for bad in ["a=%", "a=%2", "%zz=1", "a=%+1", "a=%ሴ"] {
            assert!(canonical_query(bad, "").is_err(), "{bad}");
        }
    }
}
