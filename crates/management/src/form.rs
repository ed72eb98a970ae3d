//! Forms with files, as browsers send them: `multipart/form-data` (RFC 7578), of which one field is looked for. The library for it
//! (`multer`) would bring character sets and a stream of fields into the program, neither of which definitions have.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

/// RFC 2046 allows no longer one.
const BOUNDARY_BYTES_MAX: usize = 70;

/// Returns what stands between the fields of a form; `None` if it is none.
pub(crate) fn boundary(headers: &HeaderMap) -> Option<String> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()).then(|| boundary.to_owned())
}

/// Returns the content of a form's first field of that name.
///
/// # Errors
/// What is wrong with the form.
pub(crate) fn field<'a>(body: &'a [u8], boundary: &str, name: &str) -> Result<&'a [u8], String> {
    let delimiter = format!("\r\n--{boundary}");
    // The first one may stand at the very beginning.
    let mut rest = match body.strip_prefix(&delimiter.as_bytes()[2..]) {
        Some(rest) => rest,
        None => split(body, delimiter.as_bytes()).ok_or("the form has no field")?.1,
    };
    while !rest.starts_with(b"--") {
        let (head, behind) = split(rest, b"\r\n\r\n").ok_or("a field of the form has no end")?;
        let (content, next) =
            split(behind, delimiter.as_bytes()).ok_or("a field of the form has no end")?;
        if field_name(head) == Some(name) {
            return Ok(content);
        }
        rest = next;
    }
    Err(format!("the form has no field {name:?}"))
}

/// Returns the name in `Content-Disposition: form-data; name="file"; filename="definitions.json"`.
fn field_name(head: &[u8]) -> Option<&str> {
    let head = std::str::from_utf8(head).ok()?;
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(())?;
        parameter(value, "name")
    })
}

fn parameter<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    text.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
    })
}

/// Returns what stands before the first occurrence of `by`, and what stands behind it.
fn split<'a>(text: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(by.len()).position(|window| window == by)?;
    Some((&text[..at], &text[at + by.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Vec<u8> {
        let of = |(name, content): &(&str, &str)| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\nContent-Type: x\r\n\r\n{content}\r\n"
            )
        };
        (fields.iter().map(of).collect::<String>() + "--b--\r\n").into_bytes()
    }

    #[test]
    fn a_field_is_found_by_its_name() {
        let body = form(&[("auth", "x"), ("file", "{\r\n--}"), ("file", "other")]);
        assert_eq!(field(&body, "b", "file").unwrap(), b"{\r\n--}");
        assert_eq!(field(&[b"preamble\r\n", &body[..]].concat(), "b", "auth").unwrap(), b"x");
        assert_eq!(field(&body, "b", "name"), Err("the form has no field \"name\"".to_owned()));
    }

    #[test]
    fn a_form_that_is_cut_is_refused_wherever() {
        let body = form(&[("auth", "x"), ("file", "{}")]);
        let end = body.windows(5).position(|window| window == b"--b--").unwrap();
        for length in 0..end {
            assert!(field(&body[..length], "b", "file").is_err(), "{length}");
        }
        assert!(field(b"--b--", "b", "file").is_err());
    }

    #[test]
    fn only_forms_have_a_boundary() {
        for (content_type, expected) in [
            ("multipart/form-data; boundary=b", Some("b")),
            ("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", Some("a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("application/json; boundary=b", None),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())]);
            assert_eq!(boundary(&headers).as_deref(), expected, "{content_type}");
        }
    }
}
