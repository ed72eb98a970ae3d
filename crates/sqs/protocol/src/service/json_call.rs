//! A call in JSON of a service on whatever store, for fronts that speak another protocol than SQS's.

use core::pin::Pin;

use bytes::{Bytes, BytesMut};

use super::{AnyService, Caller};
use crate::{Action, Error, Request};

impl AnyService {
    /// Carries out what `body` asks for, the JSON of the operation's request, and returns that of
    /// its result: an object without members where it has none. It is compiled here, once for all
    /// callers.
    ///
    /// # Errors
    /// As SQS refuses, with its texts; also when the body is not of the request's shape.
    pub fn call_json<'a>(
        &'a self,
        caller: &'a Caller,
        action: Action,
        body: &'a [u8],
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, Error>> + Send + 'a>> {
        Box::pin(async move {
            let reply = self.handle(caller, Request::from_json(action, body)?).await?;
            let mut out = BytesMut::new();
            reply.write_json(&mut out);
            if out.is_empty() {
                out.extend_from_slice(b"{}");
            }
            Ok(out.freeze())
        })
    }
}
