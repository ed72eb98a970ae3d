//! To be replaced by the state machine's own.
use quelea_cmq_proto::Endpoint;
pub(crate) trait Pending {
    fn all_settled(&self) -> bool;
}
impl Pending for Endpoint {
    fn all_settled(&self) -> bool {
        true
    }
}
