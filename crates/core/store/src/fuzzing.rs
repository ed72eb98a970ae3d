//! Entry points for fuzz targets: any bytes are refused or understood, never more.

use std::io::IoSlice;

use quelea_model::{QueueId, Timestamp};

use crate::checkpoint_file::{
    self as file, BLOCK_HEADER_BYTES, CHECKPOINT_HEADER_BYTES, CheckpointHeader,
};
use crate::fake_disk::FakeDisk;
use crate::record::{self, Commit, Record, Seed, parse};
use crate::segment::{FORMAT_VERSION, SEGMENT_HEADER_BYTES, SegmentFile, SegmentHeader};
use crate::{Disk, Location, LogStore, NEVER, OpenError, Options};

/// Takes the bytes for records, once as they are and once with checksums made right, and for the
/// content of a segment that a log is opened from.
pub fn fuzz_records(data: &[u8]) {
    let seed = Seed::new(1, 1);
    if let Ok(parsed) = parse(data, seed) {
        touch(&parsed.record);
    }
    let mut bytes = data.to_vec();
    let mut at = 0;
    let (mut records, mut chain, mut end) = (0, 0, 0);
    while bytes.len() >= at + 12 {
        let left = bytes.len() - at;
        let len = (usize::from(bytes[at + 4]) | usize::from(bytes[at + 5]) << 8).clamp(12, left);
        bytes[at + 4..at + 8].copy_from_slice(&(len as u32).to_le_bytes());
        let checksum = seed.checksum(&bytes[at + 4..at + len]);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(parsed) = parse(&bytes[at..], seed) {
            touch(&parsed.record);
            if end == at && !matches!(parsed.record, Record::Commit(_)) {
                records += 1;
                chain = record::chain(chain, parsed.checksum);
                end = at + len;
            }
        }
        at += len;
    }
    open(&bytes);
    // The records up to the first bad one take effect, whatever they say.
    bytes.truncate(end);
    let start = SEGMENT_HEADER_BYTES;
    let commit = Commit {
        continued: false,
        segment_end: false,
        records,
        number: 1,
        start,
        chain,
        synced: Some(0),
    };
    record::encode_commit(&commit, seed, &mut bytes);
    open(&bytes);
}

/// Takes the bytes for a checkpoint: as they are, and as blocks whose checksums are made right.
pub fn fuzz_checkpoint(data: &[u8]) {
    let _ = CheckpointHeader::decode(data);
    let header = CheckpointHeader {
        log_id: 1,
        number: 1,
        position: Location { segment: 1, offset: SEGMENT_HEADER_BYTES },
        commit: 0,
        next_seq: 1,
        next_queue: 1,
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(data);
    let mut at = CHECKPOINT_HEADER_BYTES;
    while bytes.len() >= at + BLOCK_HEADER_BYTES {
        let left = bytes.len() - at;
        let len = usize::from(bytes[at + 4]).clamp(BLOCK_HEADER_BYTES, left);
        bytes[at + 4..at + 8].copy_from_slice(&(len as u32).to_le_bytes());
        bytes[at + 8] %= 7;
        bytes[at + 9..at + 12].fill(0);
        let checksum = crc32c::crc32c_append(header.seed(), &bytes[at + 4..at + len]);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        let _ = file::decode_block(&bytes[at..at + len], header.seed());
        at += len;
    }
    let disk = FakeDisk::new();
    disk.set_content(&file::checkpoint_name(1), bytes);
    let _ = LogStore::open(&disk, Options::default(), Timestamp::ZERO);
}

/// Looks at everything that a record holds.
fn touch(record: &Record<'_>) {
    match record {
        Record::Message(message) | Record::Copy(message) => {
            assert!(message.queues().count() == message.queue_count() as usize);
            let _ = message.expiry_in(QueueId(1));
            let _ = message.entry(Location::NOWHERE, NEVER);
            let _ = message.message();
        }
        Record::Acks(acks) => acks.for_each(|_, _| {}),
        Record::Purge { kept, .. } => assert!(kept.iter().count() < usize::MAX),
        _ => {}
    }
}

/// Opens a log whose only segment has these records; damage in it is a torn end.
fn open(records: &[u8]) {
    let disk = FakeDisk::new();
    let header = SegmentHeader {
        version: FORMAT_VERSION,
        segment: 1,
        log_id: 1,
        commit: 0,
        next_seq: 1,
        next_queue: 1,
        bytes: 1 << 20,
        salt: 1,
        is_renamed: true,
    };
    let name = SegmentFile::name_of(1);
    let file = disk.create(&name);
    let Ok(file) = file else { return };
    let _ = file.write_at(0, &[IoSlice::new(&header.encode()), IoSlice::new(records)]);
    let opened = LogStore::open(&disk, Options::default(), Timestamp::ZERO);
    // A requeue may name a segment that was never there, and a commit may say that more was on the disk than is
    // there; apart from that, the log opens whatever its last segment ends with.
    let expected =
        matches!(opened, Ok(_) | Err(OpenError::Missing { .. } | OpenError::Damaged { .. }));
    assert!(expected, "{:?}", opened.err());
}
