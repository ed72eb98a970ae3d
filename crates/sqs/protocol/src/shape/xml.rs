//! XML, written straight into the reply.

use bytes::{BufMut, BytesMut};

/// An element. Its name is one of ours and needs no escape.
pub(crate) fn element(name: &str, out: &mut BytesMut, content: impl FnOnce(&mut BytesMut)) {
    out.put_u8(b'<');
    out.put_slice(name.as_bytes());
    out.put_u8(b'>');
    content(out);
    close(name, out);
}

/// An element that is written as an empty one if it has no content: a result without anything in it.
pub(crate) fn element_or_empty(
    name: &str,
    out: &mut BytesMut,
    content: impl FnOnce(&mut BytesMut),
) {
    out.put_u8(b'<');
    out.put_slice(name.as_bytes());
    let end_of_tag = out.len();
    out.put_u8(b'>');
    content(out);
    if out.len() > end_of_tag + 1 {
        close(name, out);
    } else {
        out.truncate(end_of_tag);
        out.put_slice(b"/>");
    }
}

/// The end of an element.
pub(crate) fn close(name: &str, out: &mut BytesMut) {
    out.put_slice(b"</");
    out.put_slice(name.as_bytes());
    out.put_u8(b'>');
}

/// Text between tags, with the escapes that SQS uses: a reader would make a line feed of a bare
/// carriage return. What XML has no way to write, such as U+0001, is written as U+FFFD: SQS takes no
/// such message, but another protocol may have sent it, and the other messages are to arrive.
pub(crate) fn write_text(text: &str, out: &mut BytesMut) {
    out.reserve(text.len());
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\r' => "&#xD;",
            '\t' | '\n' => continue,
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => "\u{fffd}",
            _ => continue,
        };
        out.put_slice(&text.as_bytes()[start..at]);
        out.put_slice(escape.as_bytes());
        start = at + c.len_utf8();
    }
    out.put_slice(&text.as_bytes()[start..]);
}
