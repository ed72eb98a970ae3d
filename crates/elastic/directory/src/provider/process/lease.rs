//! A lease file: which process is the relay of which request.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::identity::Identity;

/// How a lease file's name ends.
const SUFFIX: &str = "lease";

/// One relay that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) queue: String,
    pub(super) relay: u64,
    pub(super) request: String,
    #[serde(flatten)]
    pub(super) identity: Identity,
}

/// Returns the name, without a suffix, of a request's files: a queue's name may have any
/// characters.
pub(super) fn stem(queue: &str, request: &str) -> String {
    let digest =
        Sha256::new().chain_update(queue).chain_update([0]).chain_update(request).finalize();
    hex::encode(&digest[..12])
}

impl Lease {
    /// Returns its [`stem`].
    pub(super) fn stem(&self) -> String {
        stem(&self.queue, &self.request)
    }

    fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.{SUFFIX}", self.stem()))
    }

    /// Writes the file whole or not at all. It need not be synced: no relay outlives the machine.
    pub(super) fn write(&self, dir: &Path) -> std::io::Result<()> {
        let path = self.path(dir);
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(self)?)?;
        std::fs::rename(new, path)
    }

    pub(super) fn remove(&self, dir: &Path) {
        let path = self.path(dir);
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove a lease file");
        }
    }
}

/// Reads all leases, in the order of queue and relay. A file that is none is logged and left.
pub(super) fn read_all(dir: &Path) -> std::io::Result<Vec<Lease>> {
    let mut leases = Vec::new();
    for file in std::fs::read_dir(dir)? {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != SUFFIX) {
            continue;
        }
        match serde_json::from_slice::<Lease>(&std::fs::read(&path)?) {
            Ok(lease) => leases.push(lease),
            Err(error) => tracing::warn!(path = %path.display(), %error, "no lease file"),
        }
    }
    leases.sort_by(|a, b| (&a.queue, a.relay).cmp(&(&b.queue, b.relay)));
    Ok(leases)
}
