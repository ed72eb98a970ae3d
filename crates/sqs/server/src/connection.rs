//! One client's connection.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use quelea_sqs_protocol::{Identity, Queues};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::phases::{Phase, Progress};
use crate::request::{Endpoints, respond};
use crate::worker::Worker;

/// Serves a connection to its end, or until the server stops.
pub(crate) async fn serve<Q: Queues, I: Identity>(
    worker: Rc<Worker<Q, I>>,
    progress: Rc<Progress>,
    stream: TcpStream,
    endpoints: Endpoints,
    mut stopping: watch::Receiver<bool>,
) {
    let io = ProgressStream { io: TokioIo::new(stream), progress: Rc::clone(&progress) };
    let service = service_fn(move |request| {
        let (worker, progress) = (Rc::clone(&worker), Rc::clone(&progress));
        async move {
            let response = respond(&worker, &progress, endpoints, request).await;
            progress.enter(Phase::Idle);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    // Timeouts are the sweep's.
    builder
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let mut connection = pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        _ = stopping.wait_for(|stopping| *stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, peer = %endpoints.peer, "an SQS connection broke");
    }
}

/// A socket that notes when bytes come.
struct ProgressStream {
    io: TokioIo<TcpStream>,
    progress: Rc<Progress>,
}

impl Read for ProgressStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        if polled.is_ready() {
            self.progress.arrived();
        }
        polled
    }
}

impl Write for ProgressStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }
}
