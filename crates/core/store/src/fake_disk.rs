//! A disk in memory that knows what a crash may leave of it. For tests, here and in other crates.
//!
//! What was written is visible at once but durable only after a sync, sector by sector, in any
//! order and any mixture; names are durable only after [`Disk::sync_dir`], in their order. Faults
//! are made to order: errors of the n-th call, short writes, a full disk.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::{Arc, MutexGuard, PoisonError};

use fastrand::Rng;

use crate::{Disk, DiskFile};

/// Bytes that are written wholly or not at all.
pub const SECTOR_BYTES: usize = 512;

#[expect(clippy::disallowed_types, reason = "a test double that several threads may use")]
type Mutex<T> = std::sync::Mutex<T>;

/// A disk in memory. Clones are the same disk; [`FakeDisk::crash`] makes another one.
#[derive(Clone, Debug)]
pub struct FakeDisk {
    state: Arc<Mutex<State>>,
}

/// A call that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`DiskFile::read_at`]
    Read,
    /// [`DiskFile::write_at`]
    Write,
    /// [`DiskFile::sync_data`]
    Sync,
    /// [`Disk::create`]
    Create,
    /// [`Disk::rename`]
    Rename,
    /// [`Disk::remove`]
    Remove,
    /// [`Disk::sync_dir`]
    SyncDir,
}

/// What of the writes since the last sync a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// All: the process died, the machine did not.
    All,
    /// None.
    Nothing,
    /// Those up to some point.
    Prefix,
    /// Those from some point on.
    Suffix,
    /// Any.
    Random,
}

#[derive(Clone, Debug, Default)]
struct State {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since the last sync of the directory.
    name_changes: Vec<NameChange>,
    capacity: Option<u64>,
    faults: Vec<Fault>,
    short_writes: Option<Rng>,
    recording: bool,
    recorded: Vec<FakeDisk>,
    writes: u64,
    syncs: u64,
}

#[derive(Clone, Debug, Default)]
struct File {
    content: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<SectorWrite>,
}

/// A sector as one write left it.
#[derive(Clone, Debug)]
struct SectorWrite {
    sector: usize,
    /// Shorter than a sector at the end of the file.
    bytes: Vec<u8>,
    /// A sync failed on it: no later one will write it, as in Linux's page cache.
    lost: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, usize),
    Unset(String),
    Rename(String, String, usize),
}

#[derive(Clone, Debug)]
struct Fault {
    call: Call,
    /// Calls that still succeed.
    after: u64,
    kind: ErrorKind,
    /// Calls that fail, then it is over.
    times: u64,
}

impl Default for FakeDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeDisk {
    /// Returns an empty disk without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Arc::new(Mutex::new(State::default())) }
    }

    /// Limits the sum of all files' bytes; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Has a call fail: after `after` more successes, `times` times.
    pub fn fail(&self, call: Call, after: u64, times: u64, kind: ErrorKind) {
        self.state().faults.push(Fault { call, after, kind, times });
    }

    /// Takes back all faults.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// Has every write take only part of what it is given, at random.
    pub fn set_short_writes(&self, seed: Option<u64>) {
        self.state().short_writes = seed.map(Rng::with_seed);
    }

    /// Keeps a copy of the disk as it is right before each sync, from which
    /// [`FakeDisk::crash`] makes images.
    pub fn set_recording(&self, on: bool) {
        self.state().recording = on;
    }

    /// Takes the copies since the last call.
    #[must_use]
    pub fn take_recorded(&self) -> Vec<Self> {
        std::mem::take(&mut self.state().recorded)
    }

    /// Returns a new disk with what a crash at this moment leaves, chosen by the seed.
    #[must_use]
    pub fn crash(&self, survival: Survival, seed: u64) -> Self {
        let state = self.state();
        let mut random = Rng::with_seed(seed);
        let changes = select(&mut random, state.name_changes.len(), survival);
        // A journal keeps the order of names' changes: what survives is a prefix of them.
        let kept = changes.iter().filter(|kept| **kept).count();
        let mut names = state.durable_names.clone();
        for change in &state.name_changes[..kept] {
            change.apply(&mut names);
        }
        let mut after = State { capacity: state.capacity, ..State::default() };
        for (name, id) in names {
            let content = state.files[id].after_crash(survival, &mut random);
            after.names.insert(name, after.files.len());
            after.files.push(File { durable: content.clone(), content, pending: Vec::new() });
        }
        after.durable_names = after.names.clone();
        Self { state: Arc::new(Mutex::new(after)) }
    }

    /// Returns how many sector writes are not durable.
    #[must_use]
    pub fn pending_sectors(&self) -> usize {
        self.state().files.iter().map(|file| file.pending.len()).sum()
    }

    /// Returns how many calls of `write_at` there were so far.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Returns how many calls of `sync_data` there were so far.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Returns the content of a file, for tests that look at bytes.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).map(|id| state.files[*id].content.clone())
    }

    /// Sets the content of a file, durably: damage, or a golden file.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state();
        let id = match state.names.get(name) {
            Some(id) => *id,
            None => state.add_file(name),
        };
        state.durable_names.insert(name.to_owned(), id);
        state.files[id] = File { durable: content.clone(), content, pending: Vec::new() };
    }

    /// Damage at rest: flips bits of a file, durably. Nothing happens behind its end.
    pub fn flip(&self, name: &str, offset: usize, mask: &[u8]) {
        if let Some(mut content) = self.content(name) {
            for (byte, mask) in content.iter_mut().skip(offset).zip(mask) {
                *byte ^= mask;
            }
            self.set_content(name, content);
        }
    }

    /// Damage at rest: a range of a file reads as zeros from now on.
    pub fn lose_range(&self, name: &str, range: Range<usize>) {
        if let Some(mut content) = self.content(name) {
            let end = range.end.min(content.len());
            content[range.start.min(end)..end].fill(0);
            self.set_content(name, content);
        }
    }

    /// Damage at rest: a file is shorter than it was.
    pub fn cut(&self, name: &str, bytes: usize) {
        if let Some(mut content) = self.content(name) {
            content.truncate(bytes);
            self.set_content(name, content);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked with the lock held has failed anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a copy if wanted.
    fn record(&self) {
        let mut state = self.state();
        if state.recording {
            let copy = State { recorded: Vec::new(), recording: false, ..state.clone() };
            state.recorded.push(Self { state: Arc::new(Mutex::new(copy)) });
        }
    }
}

impl State {
    fn add_file(&mut self, name: &str) -> usize {
        let id = self.files.len();
        self.files.push(File::default());
        self.names.insert(name.to_owned(), id);
        id
    }

    fn check(&mut self, call: Call) -> io::Result<()> {
        let mut error = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.call == call && fault.times > 0) {
            if fault.after > 0 {
                fault.after -= 1;
            } else {
                fault.times -= 1;
                error = Some(fault.kind);
            }
        }
        error.map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn used(&self) -> u64 {
        self.names.values().map(|id| self.files[*id].content.len() as u64).sum()
    }

    fn free(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, id) => {
                names.insert(name.clone(), *id);
            }
            Self::Unset(name) => {
                names.remove(name);
            }
            Self::Rename(from, to, id) => {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
    }
}

impl File {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.content.len() < end {
            let more = vec![0; end - self.content.len()];
            self.content.extend_from_slice(&more);
        }
        self.content[offset..end].copy_from_slice(bytes);
        if bytes.is_empty() {
            return;
        }
        for sector in offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES {
            let from = sector * SECTOR_BYTES;
            let to = (from + SECTOR_BYTES).min(self.content.len());
            let bytes = self.content[from..to].to_vec();
            self.pending.push(SectorWrite { sector, bytes, lost: false });
        }
    }

    fn sync(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            if write.lost {
                self.pending.push(write);
            } else {
                write.apply(&mut self.durable);
            }
        }
    }

    fn after_crash(&self, survival: Survival, random: &mut Rng) -> Vec<u8> {
        let mut content = self.durable.clone();
        let kept = select(random, self.pending.len(), survival);
        for (write, _) in self.pending.iter().zip(kept).filter(|(_, kept)| *kept) {
            write.apply(&mut content);
        }
        content
    }
}

impl SectorWrite {
    fn apply(&self, content: &mut Vec<u8>) {
        let from = self.sector * SECTOR_BYTES;
        let to = from + self.bytes.len();
        if content.len() < to {
            content.resize(to, 0);
        }
        content[from..to].copy_from_slice(&self.bytes);
    }
}

impl Disk for FakeDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.check(Call::Create)?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let id = state.add_file(name);
        state.name_changes.push(NameChange::Set(name.to_owned(), id));
        Ok(Arc::new(FakeFile { disk: self.clone(), id }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.state().names.get(name).copied().ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(FakeFile { disk: self.clone(), id }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.check(Call::Rename)?;
        let id = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), id);
        state.name_changes.push(NameChange::Rename(from.to_owned(), to.to_owned(), id));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.check(Call::Remove)?;
        state.names.remove(name).ok_or(ErrorKind::NotFound)?;
        state.name_changes.push(NameChange::Unset(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.record();
        let mut state = self.state();
        state.check(Call::SyncDir)?;
        state.name_changes.clear();
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn free_space(&self) -> io::Result<u64> {
        Ok(self.state().free())
    }
}

struct FakeFile {
    disk: FakeDisk,
    id: usize,
}

impl DiskFile for FakeFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.check(Call::Read)?;
        let content = &state.files[self.id].content;
        let from = content.len().min(offset as usize);
        let len = buffer.len().min(content.len() - from);
        buffer[..len].copy_from_slice(&content[from..from + len]);
        Ok(len)
    }

    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.writes += 1;
        state.check(Call::Write)?;
        let mut bytes = Vec::new();
        slices.iter().for_each(|slice| bytes.extend_from_slice(slice));
        if let Some(random) = &mut state.short_writes
            && bytes.len() > 1
        {
            let len = random.usize(1..=bytes.len());
            bytes.truncate(len);
        }
        let offset = offset as usize;
        let grows = (offset + bytes.len()).saturating_sub(state.files[self.id].content.len());
        let free = state.free();
        if grows as u64 > free {
            // As much as has room is written, then nothing.
            bytes.truncate((bytes.len() - grows).saturating_add(free as usize));
            if bytes.is_empty() {
                return Err(ErrorKind::StorageFull.into());
            }
        }
        state.files[self.id].write(offset, &bytes);
        Ok(bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.record();
        let mut state = self.disk.state();
        state.syncs += 1;
        let result = state.check(Call::Sync);
        let file = &mut state.files[self.id];
        match result {
            Ok(()) => file.sync(),
            Err(_) => file.pending.iter_mut().for_each(|write| write.lost = true),
        }
        result
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.id].content.len() as u64)
    }
}

/// Returns which of so many things survive.
fn select(random: &mut Rng, len: usize, survival: Survival) -> Vec<bool> {
    let cut = random.usize(..=len);
    (0..len)
        .map(|at| match survival {
            Survival::All => true,
            Survival::Nothing => false,
            Survival::Prefix => at < cut,
            Survival::Suffix => at >= cut,
            Survival::Random => random.bool(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &dyn DiskFile, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        file.write_at(offset, &[IoSlice::new(bytes)])
    }

    #[test]
    fn what_was_synced_survives_and_what_was_not_may_not() {
        let disk = FakeDisk::new();
        let file = disk.create("a").unwrap();
        write(&*file, 0, &[1; 1024]).unwrap();
        assert!(disk.crash(Survival::Nothing, 1).content("a").is_none());
        disk.sync_dir().unwrap();
        file.sync_data().unwrap();
        write(&*file, 0, &[2; 1024]).unwrap();
        let nothing = disk.crash(Survival::Nothing, 1).content("a").unwrap();
        assert_eq!(nothing, [1; 1024]);
        let suffix: Vec<Vec<u8>> =
            (0..20).map(|seed| disk.crash(Survival::Random, seed).content("a").unwrap()).collect();
        for first in [1, 2] {
            for second in [1, 2] {
                let torn = [[first; 512], [second; 512]].concat();
                assert!(suffix.contains(&torn), "sectors survive on their own");
            }
        }
    }

    #[test]
    fn a_failed_sync_never_becomes_durable() {
        let disk = FakeDisk::new();
        let file = disk.create("a").unwrap();
        disk.sync_dir().unwrap();
        disk.fail(Call::Sync, 0, 1, ErrorKind::Other);
        write(&*file, 0, b"x").unwrap();
        assert!(file.sync_data().is_err());
        assert!(file.sync_data().is_ok());
        assert_eq!(disk.crash(Survival::Nothing, 0).content("a").unwrap(), b"");
    }

    #[test]
    fn a_full_disk_takes_what_has_room() {
        let disk = FakeDisk::new();
        disk.set_capacity(Some(10));
        let file = disk.create("a").unwrap();
        assert_eq!(write(&*file, 0, &[0; 8]).unwrap(), 8);
        assert_eq!(write(&*file, 4, &[0; 8]).unwrap(), 6);
        let error = write(&*file, 10, &[0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(write(&*file, 0, &[1; 10]).unwrap(), 10);
    }
}
