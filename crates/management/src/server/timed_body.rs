//! A request's body that has to arrive in time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

/// The time runs from when somebody begins to read it. Dripping does not help.
pub(super) struct TimedBody {
    body: Incoming,
    time: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(super) const fn new(body: Incoming, time: Duration) -> Self {
        Self { body, time, timer: None }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => {
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(this.time)));
                timer.as_mut().poll(context).map(|()| {
                    let text = "the request's body did not arrive in time";
                    Some(Err(io::Error::new(io::ErrorKind::TimedOut, text).into()))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
