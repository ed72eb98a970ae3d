//! The site that a client's producers and listeners share.

use crate::options::Options;

/// Where the directories are, and who we are to them.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) directories: Vec<String>,
    pub(super) options: Options,
}
