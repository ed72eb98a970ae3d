//! Opening a log: checkpoint, replay, proof that nothing is missing, tidying up.

use std::collections::BTreeMap;
use std::io::IoSlice;

use quelea_model::{QueueId, Seq, Timestamp};

use crate::allocation::write_spare_header;
use crate::appender::{Appender, Tail};
use crate::checkpoint_read::{Base, read_checkpoint};
use crate::commit_search::for_each_commit;
use crate::damage::{Damage, LostMessages};
use crate::disk::write_all_at;
use crate::group_commit::GroupCommit;
use crate::load_queue::LoadQueue;
use crate::log::{LastCheckpoint, LogStore};
use crate::log_directory::{FoundSegment, LogDirectory};
use crate::noted_ids::NotedIds;
use crate::record::{self, COMMIT_BYTES, Commit, Seed};
use crate::replay::{Replay, ReplaySegment};
use crate::scan::{Scan, SegmentEnd, Tally};
use crate::segment::{FORMAT_VERSION, SEGMENT_HEADER_BYTES, Segment, Segments, SyncedNote};
use crate::segment_pool::SegmentPool;
use crate::{
    Disk, DroppedTail, Location, OpenError, Options, Recovered, RecoveryReport, StoreState,
    StoreStats,
};

/// Commits of one opening. The next opening goes on with the next multiple, so that commits of a
/// tail that was dropped never look like followers of new ones.
const COMMITS_PER_OPENING: u64 = 1 << 40;

/// Message numbers that an opening leaves out behind the last one that it finds: a receipt with a number that was given
/// and did not come to the disk is to name no other message. Those are fewer, since what is written is synced within
/// moments. Openings of which no message came to the disk are counted by their commits. There are enough for 2^38 openings.
const SEQS_PER_OPENING: u64 = 1 << 24;

/// Where the log ends.
struct End {
    /// The last complete group ends here.
    position: Location,
    /// It ended its segment, or there is none.
    fresh: bool,
    commit: u64,
    /// The commit before the greatest message number.
    seq_commit: u64,
    tallies: BTreeMap<u32, Tally>,
    /// What follows and was dropped.
    dropped: Option<DroppedTail>,
    /// Segments that are not there.
    gaps: Vec<Gap>,
}

/// Segments before one, which are free or lost.
struct Gap {
    /// The one behind them.
    next: u32,
    /// The greatest number of a message before them.
    last_seq: Seq,
}

impl LogStore {
    /// Opens or creates the log in a directory that nobody else uses, and recovers its state.
    /// Blocks for as long as reading takes.
    ///
    /// # Errors
    /// [`OpenError`]: the disk refuses, or the log is damaged otherwise than by a crash. Nothing
    /// was changed then.
    pub fn open(
        disk: &dyn Disk,
        options: Options,
        now: Timestamp,
    ) -> Result<(Self, Recovered), OpenError> {
        let bytes = options.segment_bytes;
        if !(4_096..=1 << 31).contains(&bytes) || !bytes.is_multiple_of(512) {
            return Err(OpenError::Options { segment_bytes: bytes });
        }
        let mut directory = LogDirectory::scan(disk, bytes)?;
        let mut replay = Replay::new(directory.for_replay(), options.accept_damage);
        let base = match directory.checkpoints.last() {
            Some(number) => read_checkpoint(disk, *number, &mut replay)
                .map_err(|error| checkpoint_error(error, &directory))?,
            None => Base::default(),
        };
        let known_id = directory.log_id(base.log_id)?;
        let log_id = known_id.unwrap_or(options.nonce);
        let end = replay_log(&directory, &base, &mut replay)?;
        let live = check_complete(&directory, &base, &end, &mut replay)?;
        let tail = repair_tail(disk, &mut directory, &end, &options, log_id)?;
        replay.next_seq = replay.next_seq.max(directory.next_seq());
        if known_id.is_some() {
            let opening = |commit: u64| commit / COMMITS_PER_OPENING;
            let openings = opening(end.commit).saturating_sub(opening(end.seq_commit)) + 1;
            let left_out = openings.saturating_mul(SEQS_PER_OPENING);
            replay.next_seq = replay.next_seq.saturating_add(left_out);
        }
        replay.next_queue = replay.next_queue.max(directory.next_queue());
        let tail = Tail { next_seq: replay.next_seq, next_queue: replay.next_queue, ..tail };
        Ok(build(directory, base, end, replay, &live, tail, log_id, options, now))
    }
}

/// Replays the log from the checkpoint's position to its end.
fn replay_log(
    directory: &LogDirectory,
    base: &Base,
    replay: &mut Replay,
) -> Result<End, OpenError> {
    let position = base.position;
    let Some(last) = directory.last().filter(|last| position.segment <= *last) else {
        return nothing_to_replay(directory, base, replay);
    };
    // Without the leave to skip, what stands before a missing segment must have been declared free.
    let from = if replay.accepts_damage {
        position.segment
    } else {
        directory.run_start(position.segment)
    };
    let numbers: Vec<u32> = directory.numbers_from(from).collect();
    let (mut start, mut commit) = (position, base.commit);
    if let Some(first) = numbers.first().filter(|first| **first > position.segment) {
        start = Location { segment: *first, offset: SEGMENT_HEADER_BYTES };
        commit = directory.commit_before(*first);
    }
    let mut scan = Scan::new(replay, start, commit);
    let (mut dropped, mut gaps) = (None, Vec::new());
    let mut expected = position.segment;
    directory.will_need(start);
    for number in numbers {
        let segment = directory.segment(number)?;
        directory.will_need(Location { segment: number + 1, offset: 0 });
        if number > expected {
            gaps.push(Gap { next: number, last_seq: scan.last_seq });
            scan.lenient |= number > start.segment;
        }
        expected = number + 1;
        let offset = if number == start.segment { start.offset } else { SEGMENT_HEADER_BYTES };
        let before = directory.commit_before(number);
        if number > start.segment && before != scan.commit {
            if !scan.lenient {
                let problem = "it does not follow the segment before it".to_owned();
                return Err(OpenError::Damaged { file: segment.name, offset: 24, problem });
            }
            scan.commit = before;
        }
        let is_last = number == last;
        dropped = replay_segment(&mut scan, directory, number, &segment, offset, is_last)?;
    }
    scan.end();
    let (position, fresh) = (scan.committed, scan.committed_end);
    // What is lost and accepted is not missed again. Notes behind the end go with their segments' headers.
    let noted = if fresh { 0 } else { directory.noted_commit(position.segment) };
    let commit = scan.committed_commit.max(noted);
    let (seq_commit, tallies) = (scan.seq_commit, scan.tallies);
    replay.discard();
    if position < base.synced && !replay.accepts_damage {
        let file = directory.segment(position.segment)?.name;
        let problem = dropped.map_or_else(|| "the log ends here".to_owned(), |tail| tail.problem);
        return Err(OpenError::Damaged { file, offset: u64::from(position.offset), problem });
    }
    if position < base.synced {
        // What the checkpoint knows to lie behind is overwritten from now on.
        let problem = "the log ends here, and more had been on the disk".to_owned();
        let lost = replay
            .lose(|entry| entry.location >= position, |range| range.last_location() >= position)?;
        let (file, offset) = (directory.segment(last)?.name, u64::from(position.offset));
        replay.damage.push(Damage { file, offset, problem, lost });
    }
    let dropped = dropped.filter(|tail| tail.records > 0);
    Ok(End { position, fresh, commit, seq_commit, tallies, dropped, gaps })
}

/// Returns the end of a log that has no segment at the checkpoint's position, nor behind it: so it
/// is if the log had ended with a segment and nothing more had come to the disk.
fn nothing_to_replay(
    directory: &LogDirectory,
    base: &Base,
    replay: &mut Replay,
) -> Result<End, OpenError> {
    let mut position = base.position;
    let is_next = position.offset == SEGMENT_HEADER_BYTES
        && position >= base.synced
        && directory.last().is_none_or(|last| position.segment == last + 1);
    if !is_next {
        let missing = position.segment;
        if !replay.accepts_damage {
            let problem = format!("the checkpoint {} needs it", base.number);
            return Err(OpenError::Missing { segment: missing, problem });
        }
        let (first, last) = (Seq(base.next_seq), Seq(u64::MAX));
        let lost = LostMessages { queue: None, messages: None, first, last };
        replay.damage.push(missing_segment(missing, vec![lost]));
        // The number is not used again: the file may come back.
        position = Location { segment: missing + 1, offset: SEGMENT_HEADER_BYTES };
    }
    let (commit, tallies, gaps) = (base.commit, BTreeMap::new(), Vec::new());
    let seq_commit = commit;
    Ok(End { position, fresh: true, commit, seq_commit, tallies, dropped: None, gaps })
}

/// Replays a segment, skipping damage if that is accepted. Returns what is dropped of the last one.
fn replay_segment(
    scan: &mut Scan<'_>,
    directory: &LogDirectory,
    number: u32,
    segment: &ReplaySegment,
    offset: u32,
    is_last: bool,
) -> Result<Option<DroppedTail>, OpenError> {
    let mut from = offset;
    while let SegmentEnd::Broken { offset, problem } = scan.segment(number, segment, from)? {
        let end = if !is_last {
            Err(problem)
        } else if let Some(len) = directory.cut_off(number) {
            Err(format!("{problem}: the file ends at byte {len}"))
        } else {
            check_torn(scan, segment, offset, &problem, directory.noted_commit(number))
                .map_err(|source| io_error("read", &segment.name, source))?
        };
        let problem = match end {
            Ok(tail) => return Ok(Some(tail)),
            Err(problem) => problem,
        };
        if !scan.replay.accepts_damage {
            let (file, offset) = (segment.name.clone(), u64::from(offset));
            return Err(OpenError::Damaged { file, offset, problem });
        }
        let next = scan
            .skip(segment, offset, &problem)
            .map_err(|source| io_error("read", &segment.name, source))?;
        let Some(next) = next else { break };
        from = next;
    }
    Ok(None)
}

/// Checks that the last segment, which cannot be read from `offset` on, is only torn, and counts
/// what is behind it. A crash tears off nothing that was on the disk, and the commits that follow
/// say what was, as does the segment's beginning, up to `noted`: then it is damage, and the error
/// says so.
fn check_torn(
    scan: &Scan<'_>,
    segment: &ReplaySegment,
    offset: u32,
    problem: &str,
    noted: u64,
) -> std::io::Result<Result<DroppedTail, String>> {
    let mut records = u64::from(scan.open_records);
    let mut synced = noted;
    for_each_commit(&*segment.file, offset, segment.seed, |_, commit| {
        // Older ones are what an earlier crash had cut off.
        if commit.number > scan.commit {
            records += u64::from(commit.records);
            synced = synced.max(commit.synced.filter(|at| *at < commit.number).unwrap_or(0));
        }
    })?;
    if synced > scan.commit {
        return Ok(Err(format!("{problem}, and this had been on the disk")));
    }
    let (file, problem) = (segment.name.clone(), problem.to_owned());
    Ok(Ok(DroppedTail { file, offset, problem, records }))
}

/// Adds to the error what can be done: a checkpoint that is not whole can be done without only if
/// the log still begins where it began.
fn checkpoint_error(error: OpenError, directory: &LogDirectory) -> OpenError {
    let OpenError::Damaged { file, offset, problem } = error else { return error };
    if !file.starts_with("checkpoint") {
        return OpenError::Damaged { file, offset, problem };
    }
    let advice = if directory.run_start(1) == 1 && directory.has(1) {
        "the log still has all its segments and can rebuild it: move the file out of the directory and start again"
    } else {
        "the log alone cannot rebuild it, since its first segments were freed: restore the directory from a copy"
    };
    OpenError::Damaged { file, offset, problem: format!("{problem}; {advice}") }
}

/// Checks that every segment that is not there was declared free, and drops entries whose segments
/// were. Returns the live pairs by segment.
fn check_complete(
    directory: &LogDirectory,
    base: &Base,
    end: &End,
    replay: &mut Replay,
) -> Result<BTreeMap<u32, u32>, OpenError> {
    let missing = |segment: u32, problem: &str| {
        Err(OpenError::Missing { segment, problem: problem.to_owned() })
    };
    for gap in end.gaps.iter().filter(|gap| gap.next - 1 > replay.freed_prefix) {
        if !replay.accepts_damage {
            return missing(gap.next - 1, "the replay needs it");
        }
        let first = Seq(gap.last_seq.0.saturating_add(1));
        let last = Seq(directory.next_seq_before(gap.next).saturating_sub(1));
        let lost = LostMessages { queue: None, messages: None, first, last };
        replay.damage.push(missing_segment(gap.next - 1, vec![lost]));
    }
    replay.page_in_noted()?;
    let mut short = Vec::new();
    for needed in base.needed.iter().filter(|needed| !replay.is_freed(needed.number)) {
        let Some(found) = directory.segments.get(&needed.number) else {
            if replay.accepts_damage {
                continue;
            }
            return missing(needed.number, "the checkpoint needs it");
        };
        if found.file.bytes < needed.end {
            short.push((needed, found.file.name.clone(), u64::from(found.file.bytes)));
        }
    }
    for (needed, file, len) in short {
        let (number, end) = (needed.number, needed.end);
        let is_lost = |location: Location, bytes: u32| {
            location.segment == number && u64::from(location.offset) + u64::from(bytes) > len
        };
        let lost = replay.lose(
            |entry| is_lost(entry.location, entry.body_bytes.max(1)),
            |range| is_lost(range.last_location(), 1),
        )?;
        let problem = format!("the file ends here instead of at byte {end}");
        replay.damage.push(Damage { file, offset: len, problem, lost });
    }
    if !replay.damage.is_empty() && !replay.accepts_damage {
        let (damage, topology) =
            (std::mem::take(&mut replay.damage), std::mem::take(&mut replay.topology));
        return Err(OpenError::Lost { damage, topology });
    }
    let mut live = replay.count_live();
    let gone: Vec<u32> = live.keys().copied().filter(|number| !directory.has(*number)).collect();
    for number in gone {
        if !replay.accepts_damage {
            return missing(number, "messages lie in it");
        }
        let lost = replay
            .lose(|entry| entry.location.segment == number, |range| range.segment == number)?;
        replay.damage.push(missing_segment(number, lost));
        live.remove(&number);
    }
    Ok(live)
}

fn missing_segment(number: u32, lost: Vec<LostMessages>) -> Damage {
    let problem = "it is missing".to_owned();
    Damage { file: format!("segment {number} of the log"), offset: 0, problem, lost }
}

/// Makes the disk as if the last run had ended at the last complete group. Returns the place where
/// the log goes on.
fn repair_tail(
    disk: &dyn Disk,
    directory: &mut LogDirectory,
    end: &End,
    options: &Options,
    log_id: u64,
) -> Result<Tail, OpenError> {
    let mut tail = Tail {
        segment: end.position.segment,
        offset: end.position.offset,
        capacity: options.segment_bytes,
        seed: Seed::new(options.nonce, end.position.segment),
        fresh: true,
        commit: end.commit,
        next_seq: 0,
        next_queue: 0,
    };
    // From the last one down, so that what is left is the beginning of the log at any time.
    for spare in directory.take_after(end.position.segment) {
        let cleared = write_spare_header(&*spare.file, spare.bytes, log_id);
        cleared.map_err(|source| io_error("clear", &spare.name, source))?;
        directory.spare_segments.push(spare);
    }
    let last = directory.segment(end.position.segment).ok().filter(|_| !end.tallies.is_empty());
    if let Some(last) = &last {
        last.file.sync_data().map_err(|source| io_error("sync", &last.name, source))?;
    }
    match last {
        Some(last) if !end.fresh => {
            tail.capacity = directory.capacity(end.position.segment);
            tail.seed = last.seed;
            let is_cut = directory.cut_off(end.position.segment).is_some();
            mark_opening(&mut tail, &last, is_cut, options)?;
        }
        _ if !end.tallies.is_empty() => begin_next_segment(&mut tail, options),
        _ => {}
    }
    for name in directory.leftovers() {
        // Whatever stays is found again by the next opening.
        let _ = disk.remove(&name);
    }
    // A process that was killed may have left names that are not durable, that of the checkpoint
    // among them.
    disk.sync_dir().map_err(|source| io_error("sync", "the log's directory", source))?;
    Ok(tail)
}

fn begin_next_segment(tail: &mut Tail, options: &Options) {
    tail.segment += 1;
    tail.offset = SEGMENT_HEADER_BYTES;
    tail.capacity = options.segment_bytes;
    tail.seed = Seed::new(options.nonce, tail.segment);
    tail.fresh = true;
}

/// Writes and syncs an empty commit that begins a new range of commit numbers, and notes that all before it is on the
/// disk. What a crash left behind it has lower numbers, so it is never taken for a continuation of what comes now.
fn mark_opening(
    tail: &mut Tail,
    segment: &ReplaySegment,
    is_cut: bool,
    options: &Options,
) -> Result<(), OpenError> {
    let number = (tail.commit | (COMMITS_PER_OPENING - 1)) + 1;
    // A segment of the older format, or one that lost its end, is not gone on with.
    let is_old = segment.version < FORMAT_VERSION;
    let segment_end =
        is_old || is_cut || tail.offset as usize + 2 * COMMIT_BYTES > tail.capacity as usize;
    let commit = Commit {
        continued: false,
        segment_end,
        records: 0,
        number,
        start: tail.offset,
        chain: 0,
        synced: (!is_old).then_some(tail.commit),
    };
    let mut bytes = Vec::with_capacity(COMMIT_BYTES);
    record::encode_commit(&commit, tail.seed, &mut bytes);
    let note = SyncedNote::new(tail.commit, tail.seed);
    write_all_at(&*segment.file, u64::from(tail.offset), vec![IoSlice::new(&bytes)])
        .and_then(|()| if is_old { Ok(()) } else { note.write(&*segment.file) })
        .and_then(|()| segment.file.sync_data())
        .map_err(|source| io_error("mark", &segment.name, source))?;
    tail.commit = number;
    tail.offset += bytes.len() as u32;
    tail.fresh = false;
    if segment_end {
        begin_next_segment(tail, options);
    }
    Ok(())
}

fn io_error(action: &'static str, file: &str, source: std::io::Error) -> OpenError {
    OpenError::Io { action, file: file.to_owned(), source }
}

#[expect(clippy::too_many_arguments, reason = "the pieces that an open log is made of")]
fn build(
    directory: LogDirectory,
    base: Base,
    end: End,
    mut replay: Replay,
    live: &BTreeMap<u32, u32>,
    tail: Tail,
    log_id: u64,
    options: Options,
    now: Timestamp,
) -> (LogStore, Recovered) {
    let mut pool = SegmentPool::new(log_id, &options, directory.next_slot);
    for file in directory.spare_segments {
        pool.add(file);
    }
    let account = |number, found: &FoundSegment| {
        let live = live.get(&number).copied().unwrap_or(0);
        segment_of(number, found, live, &base, &end, &replay)
    };
    let mut segments = segments_in_use(directory.segments, account, &mut pool);
    if tail.fresh {
        segments.add(Segment::new(tail.segment, tail.capacity, tail.seed));
    }
    let replayed_bytes = end.tallies.values().map(|t| u64::from(t.end - t.start)).sum();
    let report = RecoveryReport {
        checkpoint: (base.number > 0).then_some(base.number),
        segments: segments.len() as u64,
        replayed_bytes,
        replayed_records: replay.records,
        entries: replay.len() as u64,
        dropped_tail: end.dropped,
    };
    let covered = if base.number > 0 { base.position } else { Location::NOWHERE };
    let mut store = LogStore {
        log_id,
        options,
        appender: Appender::new(log_id, options.nonce, options.segment_bytes, tail),
        segments,
        pool,
        commit: GroupCommit::new(&options, Location { segment: tail.segment, offset: tail.offset }),
        topology: replay.topology.clone(),
        freeing: Vec::new(),
        loads: LoadQueue::default(),
        checkpoint_writer: None,
        checkpoint: LastCheckpoint {
            number: base.number,
            names: base.name.into_iter().collect(),
            position: covered,
            bytes: base.bytes,
            // What is damaged is left behind as soon as a checkpoint covers it.
            appended_since: if replay.damage.is_empty() { replayed_bytes } else { u64::MAX / 2 },
            retry_at: None,
        },
        noted: NotedIds::default(),
        state: StoreState::Healthy,
        stats: StoreStats::default(),
        now,
    };
    let mut recovered = Recovered {
        topology: replay.topology.clone(),
        next_seq: Seq(replay.next_seq),
        next_queue: QueueId(replay.next_queue),
        damage: std::mem::take(&mut replay.damage),
        report,
        ..Recovered::default()
    };
    replay.fill(&mut recovered);
    store.noted = NotedIds::recovered(&recovered);
    (store, recovered)
}

/// Returns the segments that something needs; the files of the others go to the pool.
fn segments_in_use(
    found: impl IntoIterator<Item = (u32, FoundSegment)>,
    account: impl Fn(u32, &FoundSegment) -> Option<Segment>,
    pool: &mut SegmentPool,
) -> Segments {
    let mut segments = Segments::default();
    for (number, found) in found {
        match account(number, &found) {
            Some(segment) => segments.add(Segment { file: Some(found.file), ..segment }),
            None => pool.recycle(found.file),
        }
    }
    segments.changed = true;
    segments
}

/// Returns the account of a segment without its file; `None` if nothing needs it.
fn segment_of(
    number: u32,
    found: &FoundSegment,
    live: u32,
    base: &Base,
    end: &End,
    replay: &Replay,
) -> Option<Segment> {
    let tally = end.tallies.get(&number);
    let needed = base.needed.iter().find(|needed| needed.number == number);
    if replay.is_freed(number) || (tally.is_none() && needed.is_none() && live == 0) {
        return None;
    }
    let mut segment = Segment::new(number, found.header.bytes, found.seed());
    segment.live = live;
    segment.end = tally.map_or(0, |t| t.end).max(needed.map_or(0, |n| n.end));
    segment.end = segment.end.max(SEGMENT_HEADER_BYTES);
    if !replay.damage.is_empty() {
        // Else the next checkpoint would miss again what is lost.
        segment.end = segment.end.min(found.file.bytes);
    }
    let pairs = tally.map_or(0, |t| t.pairs).saturating_add(needed.map_or(0, |n| n.pairs));
    segment.pairs = pairs.max(live);
    segment.replayed = tally.is_some_and(|t| t.topology) || replay.moved_from.contains(&number);
    Some(segment)
}
