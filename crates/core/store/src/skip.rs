//! Goes on behind damage, if whoever runs the program has accepted that something is lost.

use std::io;
use std::sync::Arc;

use quelea_model::{QueueId, Seq};

use crate::commit_search::for_each_commit;
use crate::damage::{Damage, LostMessages};
use crate::disk::read_all_at;
use crate::record::{self, RECORD_BYTES_MIN, Record};
use crate::record_reader::RecordReader;
use crate::replay::ReplaySegment;
use crate::scan::Scan;

/// A number this far behind the last one is taken for damage itself.
const SEQ_STEP_MAX: u64 = 1 << 32;
/// A length beyond this is not tried as that of the damaged record.
const RECORD_BYTES_TRIED_MAX: usize = 256 * 1024 * 1024;

impl Scan<'_> {
    /// Notes damage at a place of the segment, and returns from where its records can be read again; `None`
    /// if that is nowhere. What is intact of the damaged group counts.
    pub(crate) fn skip(
        &mut self,
        segment: &ReplaySegment,
        offset: u32,
        problem: &str,
    ) -> io::Result<Option<u32>> {
        let (next, lost) = match self.skip_record(segment, offset)? {
            Some((next, lost)) => (Some(next), lost),
            None => (self.skip_to_commit(segment, offset)?, None),
        };
        self.lenient = true;
        let (offset, file) = (u64::from(offset), segment.name.clone());
        // What it says of itself may be damaged too: what is missing in the numbers is true in any case.
        let mut lost = lost.unwrap_or_default();
        let first = Seq(self.last_seq.0.saturating_add(1));
        lost.push(LostMessages { queue: None, messages: None, first, last: Seq(u64::MAX) });
        self.unbounded.push(self.replay.damage.len());
        self.replay.damage.push(Damage { file, offset, problem: problem.to_owned(), lost });
        Ok(next)
    }

    /// Returns where a damaged record ends, if it is the only one and its length is not damaged,
    /// and what it says of itself if that makes sense.
    fn skip_record(
        &self,
        segment: &ReplaySegment,
        offset: u32,
    ) -> io::Result<Option<(u32, Option<Vec<LostMessages>>)>> {
        let mut header = [0; RECORD_BYTES_MIN];
        if read_all_at(&*segment.file, u64::from(offset), &mut header)? < header.len() {
            return Ok(None);
        }
        let Ok(len) = record::record_len(&header) else { return Ok(None) };
        let Some(next) = offset.checked_add(len as u32) else { return Ok(None) };
        let mut reader = RecordReader::new(Arc::clone(&segment.file), segment.seed);
        if len > RECORD_BYTES_TRIED_MAX || reader.record(next, || 64 * 1024).is_err() {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        let read = read_all_at(&*segment.file, u64::from(offset), &mut bytes)?;
        let lost = record::decode_damaged(&bytes[..read]).and_then(|found| self.lost_by(&found));
        Ok(Some((next, lost)))
    }

    /// Returns what is lost with a damaged record, if what it says of itself can be true.
    fn lost_by(&self, record: &Record<'_>) -> Option<Vec<LostMessages>> {
        match record {
            Record::Message(message) => {
                let step = message.seq.0.checked_sub(self.last_seq.0)?;
                let queues: Vec<QueueId> = message.queues().map(|(queue, _)| queue).collect();
                let plausible = (1..SEQ_STEP_MAX).contains(&step) && !queues.is_empty();
                plausible
                    .then(|| queues.iter().map(|id| LostMessages::one(*id, message.seq)).collect())
            }
            // The message itself may be gone with its segment: then this was all that was left of it.
            Record::Requeue { queue, entry, .. } => {
                let (queue, seq) = (Some(*queue), entry.seq);
                let lost = LostMessages { queue, messages: None, first: seq, last: seq };
                (seq <= self.last_seq).then(|| vec![lost])
            }
            _ => None,
        }
    }

    /// Returns the next place at which a commit says that a group begins, or that commit if the group had begun
    /// before.
    fn skip_to_commit(&self, segment: &ReplaySegment, offset: u32) -> io::Result<Option<u32>> {
        let mut next = None;
        for_each_commit(&*segment.file, offset, segment.seed, |at, commit| {
            if next.is_none() && commit.number > self.commit {
                next = Some(if commit.start > offset { commit.start } else { at });
            }
        })?;
        Ok(next)
    }

    /// The log ends: what was intact of a damaged group and has no commit is lost with it.
    pub(crate) fn end(&mut self) {
        if self.lenient
            && let Some(damage) = self.replay.damage.last_mut()
        {
            let first = Seq(self.committed_seq.0.saturating_add(1));
            damage.lost.retain(|lost| lost.queue.is_some() || lost.first < first);
            let last = Seq(u64::MAX);
            damage.lost.push(LostMessages { queue: None, messages: None, first, last });
        }
    }

    /// A message was read: what was lost before has smaller numbers.
    pub(crate) fn note_message(&mut self, seq: Seq) {
        if seq <= self.last_seq {
            // One that made room in memory is written later than others.
            return;
        }
        self.last_seq = seq;
        self.seq_commit = self.commit;
        for at in self.unbounded.drain(..) {
            let Some(damage) = self.replay.damage.get_mut(at) else { continue };
            for lost in damage.lost.iter_mut().filter(|lost| lost.queue.is_none()) {
                lost.last = Seq(seq.0.saturating_sub(1));
            }
            damage.lost.retain(|lost| lost.first <= lost.last);
        }
    }
}
