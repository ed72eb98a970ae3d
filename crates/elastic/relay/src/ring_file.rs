//! A file without a name that holds a queue of bytes, never more than its limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use bytes::Bytes;

/// A file that is used as a ring buffer.
pub(crate) struct RingFile {
    file: File,
    bytes_max: u64,
    /// Since the beginning.
    written: u64,
    read: u64,
}

impl RingFile {
    pub(crate) fn new(directory: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        Ok(Self { file, bytes_max, written: 0, read: 0 })
    }

    pub(crate) fn write(&mut self, frames: &[Bytes]) -> io::Result<()> {
        for frame in frames {
            let away = self.written - self.read + frame.len() as u64;
            if away > self.bytes_max {
                let text = format!("{away} bytes are more than the {} of a file", self.bytes_max);
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            }
            let at = self.written % self.bytes_max;
            let (here, wrapped) = frame.split_at(self.to_the_end(at, frame.len()));
            self.file.write_all_at(here, at)?;
            self.file.write_all_at(wrapped, 0)?;
            self.written += frame.len() as u64;
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut all = vec![0; bytes];
        let at = self.read % self.bytes_max;
        let (here, wrapped) = all.split_at_mut(self.to_the_end(at, bytes));
        self.file.read_exact_at(here, at)?;
        self.file.read_exact_at(wrapped, 0)?;
        self.read += bytes as u64;
        if self.read == self.written {
            // Nothing is away: its place on the disk is given back.
            self.file.set_len(0)?;
            (self.read, self.written) = (0, 0);
        }
        Ok(all)
    }

    /// Returns how many of so many bytes from `at` lie before the file's end.
    fn to_the_end(&self, at: u64, bytes: usize) -> usize {
        usize::try_from(self.bytes_max - at).unwrap_or(usize::MAX).min(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_file_reads_what_was_written_however_often_it_wraps() {
        let mut ring = RingFile::new(&std::env::temp_dir(), 1_000).unwrap();
        let (mut random, mut written, mut read) = (fastrand::Rng::with_seed(7), 0_u64, 0_u64);
        for _ in 0..10_000 {
            let room = 1_000 - (written - read);
            let count = random.u64(0..=room.min(400));
            let frame: Vec<u8> = (written..written + count).map(|n| (n % 251) as u8).collect();
            ring.write(&[Bytes::from(frame)]).unwrap();
            written += count;
            let count = random.u64(0..=(written - read));
            let expected: Vec<u8> = (read..read + count).map(|n| (n % 251) as u8).collect();
            assert_eq!(ring.read(count as usize).unwrap(), expected);
            read += count;
            assert!(ring.file.metadata().unwrap().len() <= 1_000);
        }
        assert!(written > 100_000);
    }

    #[test]
    fn a_full_ring_file_refuses_more() {
        let mut ring = RingFile::new(&std::env::temp_dir(), 10).unwrap();
        ring.write(&[Bytes::from_static(b"12345678")]).unwrap();
        let error = ring.write(&[Bytes::from_static(b"abc")]).unwrap_err();
        assert_eq!(error.to_string(), "11 bytes are more than the 10 of a file");
    }
}
