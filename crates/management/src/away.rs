//! The API of a front-end that is not there yet: every call is refused with 503.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;

use crate::api::HttpSettings;
use crate::error::ApiError;
use crate::server::{self, Shared};
use crate::web_pages::WebPages;

/// Refuses all calls, saying why, until `stop` resolves.
pub async fn serve_away(
    listener: TcpListener,
    reason: &'static str,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let refuse = move || async move { refusal(reason) };
    let router = Router::new().fallback(refuse);
    let pages = WebPages::new(settings.hosts);
    let shared = Shared::new(router, settings.limits, pages, Arc::default(), settings.audit);
    server::serve(listener, shared, stop).await;
}

fn refusal(reason: &str) -> Response {
    ApiError::Unavailable(reason.to_owned()).into_response()
}
