//! What is read of earlier messages: deduplication ids at the beginning, and messages whenever the window has room.

use quelea_sqs_protocol::Fault;

use super::{Owner, Phase};
use crate::clock::Now;
use crate::effect::Effect;
use crate::limits::{
    LOADED_SEGMENTS_MAX, SEGMENT_ROWS_MAX, WINDOW_MESSAGES_MAX, WINDOW_MESSAGES_MIN,
};
use crate::message::{Noted, Row, SegmentKey};

/// The window is filled up to here: one load more is not beyond its limit.
const LOADED_MAX: usize = WINDOW_MESSAGES_MAX - LOADED_SEGMENTS_MAX * SEGMENT_ROWS_MAX;

impl Owner {
    /// Begins to read what it has to know.
    pub(super) fn recover(&mut self, now: Now) {
        let segments = self.segments.with_deduplications(now.wall_ms);
        if segments.is_empty() {
            self.phase = Phase::Recovering { has_deduplications: true };
        } else {
            self.effects.push_back(Effect::ReadDeduplications(segments));
        }
        self.load_more();
        self.end_recovery();
    }

    /// The deduplication ids were read, of each partition all that there are.
    pub fn deduplications_read(&mut self, read: Vec<(SegmentKey, Vec<Noted>)>, now: Now) {
        if self.has_ended() {
            return;
        }
        for (segment, noted) in read {
            for noted in noted {
                // What came beyond a seal counts for nothing.
                if self.segments.key_of(noted.number) == Some(segment) {
                    self.deduplications.add(noted);
                }
            }
        }
        self.phase = Phase::Recovering { has_deduplications: true };
        self.end_recovery();
        self.go_on(now);
    }

    /// Has messages read if there are some that the window has room for.
    pub(super) fn load_more(&mut self) {
        let loaded_max = if self.is_memory_short { WINDOW_MESSAGES_MIN } else { LOADED_MAX };
        if self.is_loading || self.loaded_to >= self.acked_to || self.window.len() >= loaded_max {
            return;
        }
        let wanted = self.segments.beyond(self.loaded_to, self.acked_to);
        if wanted.is_empty() {
            self.loaded_to = self.acked_to;
            return;
        }
        self.is_loading = true;
        self.effects.push_back(Effect::Load(wanted));
    }

    /// Rows of a partition cannot be read: it is not deleted as one of which nothing is left, and ends by itself.
    pub fn keep_partition(&mut self, segment: SegmentKey) {
        self.segments.hold(segment);
    }

    /// Messages were read, of each partition all that there are up to that number.
    pub fn loaded(&mut self, read: Vec<(SegmentKey, Vec<Row>)>, to: u64, now: Now) {
        if self.has_ended() {
            return;
        }
        self.is_loading = false;
        for (segment, rows) in read {
            for row in rows {
                let is_new = row.number > self.loaded_to
                    && row.number <= to
                    && !self.deleted_ahead.contains(&row.number);
                // What came beyond a seal counts for nothing: the number may be another epoch's.
                if is_new && self.segments.key_of(row.number) == Some(segment) {
                    let handed_over = self.handed_over.remove(&row.number);
                    self.window.insert(segment, row, None, now.wall_ms);
                    if let Some(reception) = handed_over {
                        self.window.restore(reception, now.wall_ms);
                    }
                    self.segments.hold(segment);
                }
            }
        }
        self.loaded_to = self.loaded_to.max(to);
        // Those that were handed over and are not there are gone.
        self.handed_over.retain(|number, _| *number > to);
        self.deleted_ahead = self.deleted_ahead.split_off(&(self.loaded_to + 1));
        self.load_more();
        self.end_recovery();
        self.go_on(now);
    }

    fn end_recovery(&mut self) {
        if self.phase == (Phase::Recovering { has_deduplications: true }) && !self.is_loading {
            self.phase = Phase::Serving;
        }
    }
}

/// Returns the fault that says that what is not in memory cannot be looked at now.
pub(super) fn not_loaded() -> Fault {
    Fault::Unavailable("too many messages before this one wait".to_owned())
}
