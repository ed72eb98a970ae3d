//! The console at `/`: the files that `make build` makes of the folder `console`, held in the binary. A program that
//! was built without them, by `cargo build` alone or where there is no Node.js, has a plain page there.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;

/// One file. `console/embed.js` writes these.
#[derive(Debug)]
struct File {
    /// Where a browser asks for it.
    path: &'static str,
    content_type: &'static str,
    /// Changes with what is in it. A weak one: it holds for the plain and the compressed bytes.
    etag: Option<&'static str>,
    /// Whether its path changes with what is in it, so that a browser need never ask again.
    immutable: bool,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
}

#[cfg(feature = "console")]
static FILES: &[File] = include!(concat!(
    env!(
        "QUELEA_CONSOLE_DIST",
        "the feature `console` needs what console/build.sh prints; `make build` does that"
    ),
    "/files.rs"
));

#[cfg(not(feature = "console"))]
static FILES: &[File] = &[File {
    path: "/",
    content_type: "text/html; charset=utf-8",
    etag: None,
    immutable: false,
    plain: include_bytes!("plain_page.html"),
    gzip: None,
}];

/// Nothing but our own files and our own API, no code or style in the page itself, no frame around it, and no text
/// that becomes markup by mistake (Svelte's own templates are the exception, under their name).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

const GUARDS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Of a file whose name changes with it; the others are asked for each time, and mostly answered with 304.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// Returns the routes of the console's files, which are for whoever asks: they hold nothing of the
/// broker.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(async move |asked: HeaderMap| answer(file, &asked)))
    })
}

fn answer(file: &File, asked: &HeaderMap) -> Response<Body> {
    let gzip = file.gzip.filter(|_| takes_gzip(asked));
    let is_known = file.etag.is_some_and(|etag| is_one_of(asked, etag));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Bytes::from_static(gzip.unwrap_or(file.plain)).into_response(),
    };
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    for (name, value) in GUARDS {
        set(name, value);
    }
    set(header::CACHE_CONTROL, if file.immutable { FOR_EVER } else { ASK_AGAIN });
    set(header::CONTENT_TYPE, file.content_type);
    if let Some(etag) = file.etag {
        set(header::ETAG, etag);
    }
    if file.gzip.is_some() {
        set(header::VARY, "accept-encoding");
    }
    if gzip.is_some() && !is_known {
        set(header::CONTENT_ENCODING, "gzip");
    }
    response
}

/// Returns whether `Accept-Encoding` has gzip, and not with `q=0` (RFC 9110, 12.5.3).
fn takes_gzip(asked: &HeaderMap) -> bool {
    words(asked, &header::ACCEPT_ENCODING).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

/// Returns whether `If-None-Match` has this ETag, weakly compared (RFC 9110, 13.1.2).
fn is_one_of(asked: &HeaderMap, etag: &str) -> bool {
    let opaque = |tag: &'_ str| tag.trim_start_matches("W/").to_owned();
    words(asked, &header::IF_NONE_MATCH).any(|known| known == "*" || opaque(known) == opaque(etag))
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: File = File {
        path: "/assets/index-1.js",
        content_type: "text/javascript; charset=utf-8",
        etag: Some("W/\"1\""),
        immutable: true,
        plain: b"plain",
        gzip: Some(b"gzip"),
    };

    fn asked(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = headers.iter().cloned();
        pairs.map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    async fn body(response: Response<Body>) -> Bytes {
        axum::body::to_bytes(response.into_body(), 1_000_000).await.unwrap()
    }

    #[tokio::test]
    async fn who_takes_gzip_gets_it() {
        for (accepts, is_taken) in [
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("gzip;q=much", false),
        ] {
            let response = answer(&SCRIPT, &asked(&[(header::ACCEPT_ENCODING, accepts)]));
            let headers = response.headers();
            assert_eq!(headers.contains_key(header::CONTENT_ENCODING), is_taken, "{accepts}");
            assert_eq!(headers[header::VARY], "accept-encoding");
            assert_eq!(body(response).await, if is_taken { "gzip" } else { "plain" });
        }
    }

    #[tokio::test]
    async fn who_has_it_is_told_so() {
        for known in ["W/\"1\"", "\"0\", \"1\"", "*"] {
            let response = answer(&SCRIPT, &asked(&[(header::IF_NONE_MATCH, known)]));
            assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(response.headers()[header::ETAG], "W/\"1\"");
            assert!(body(response).await.is_empty());
        }
        let other = asked(&[(header::IF_NONE_MATCH, "\"2\"")]);
        assert_eq!(answer(&SCRIPT, &other).status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn every_file_is_guarded() {
        for file in FILES {
            let response = answer(file, &HeaderMap::new());
            assert_eq!(response.status(), StatusCode::OK, "{}", file.path);
            for (name, value) in GUARDS {
                assert_eq!(response.headers()[name], value);
            }
            assert_eq!(response.headers()[header::CONTENT_TYPE], file.content_type);
            assert_eq!(body(response).await, file.plain);
        }
        assert!(FILES.iter().any(|file| file.path == "/"));
    }
}
