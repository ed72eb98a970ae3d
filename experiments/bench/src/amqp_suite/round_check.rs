//! Whether what a round brought is what was sent.

use super::args::Experiment;
use super::case::Case;
use super::protocol::{Consumed, Published};

/// Returns what is wrong with a round of `messages` from each publisher, if anything is. What is
/// not reported is as wrong as what did not arrive.
pub(super) fn complaint(
    case: &Case,
    messages: u64,
    published: &Published,
    consumed: &Consumed,
) -> Option<String> {
    let (pairs, fanout) = (case.pairs as usize, case.fanout as usize);
    // The baseline's publisher looks at its reply itself, and its stream's pieces are no messages.
    let (things, with_replies, sent) = match case.experiment {
        Experiment::Baseline => ("pieces", 0, None),
        _ => ("messages", pairs, Some(messages)),
    };
    for (what, found, expected) in [
        ("publishers' messages", published.ledgers.len(), pairs),
        ("publishers' replies", published.replies.len(), with_replies),
        ("consumers' messages", consumed.audits.len(), pairs * fanout),
    ] {
        if found != expected {
            return Some(format!("{what} were reported of {found}, not {expected}"));
        }
    }
    if let (Some(due), Some(ledger)) =
        (sent, published.ledgers.iter().find(|ledger| Some(ledger.count) != sent))
    {
        return Some(format!("{} of {due} messages were sent", ledger.count));
    }
    let mut audits = consumed.audits.iter().enumerate();
    audits
        .find_map(|(index, audit)| audit.complaint(&published.ledgers[index / fanout], things))
        .or_else(|| published.replies.iter().find_map(|replies| replies.complaint()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::Delivery;
    use crate::latency::Percentiles;
    use crate::ledger::{Audit, Ledger, Replies};

    const MESSAGES: u64 = 3;

    /// Returns a round of publishers and consumers whose messages and replies all came.
    fn round(case: &Case) -> (Published, Consumed) {
        let (mut ledger, mut audit) = (Ledger::default(), Audit::default());
        for stamp in 1..=MESSAGES {
            ledger.add(stamp);
            audit.add(&Delivery { tag: stamp, stamp, size: 8, is_damaged: false });
        }
        let (pairs, consumers) = (case.pairs as usize, (case.pairs * case.fanout) as usize);
        let published = Published {
            seconds: 1.0,
            cpu_us: 0,
            ledgers: vec![ledger; pairs],
            replies: vec![Replies { expected: ledger, audit }; pairs],
            answer: Percentiles::default(),
        };
        let latency = Percentiles::default();
        (published, Consumed { cpu_us: 0, audits: vec![audit; consumers], latency })
    }

    #[test]
    fn a_round_counts_only_with_every_report() {
        let case = Case { pairs: 2, fanout: 3, ..Case::de_spsc() };
        let (published, consumed) = round(&case);
        let said = |published: &Published, consumed: &Consumed| {
            complaint(&case, MESSAGES, published, consumed).unwrap_or_default()
        };
        assert_eq!(said(&published, &consumed), "");
        let mut silent = consumed.clone();
        silent.audits.pop();
        assert_eq!(said(&published, &silent), "consumers' messages were reported of 5, not 6");
        let mut unanswered = published.clone();
        unanswered.replies.clear();
        assert_eq!(said(&unanswered, &consumed), "publishers' replies were reported of 0, not 2");
        unanswered.ledgers.clear();
        assert_eq!(said(&unanswered, &consumed), "publishers' messages were reported of 0, not 2");
    }

    #[test]
    fn each_consumer_is_compared_with_its_own_publisher_and_replies_too() {
        let case = Case { pairs: 2, fanout: 2, ..Case::de_spsc() };
        let (published, mut consumed) = round(&case);
        consumed.audits[3] = Audit::default();
        let said = complaint(&case, MESSAGES, &published, &consumed);
        assert_eq!(said.as_deref(), Some("3 of 3 messages are lost"));
        let (mut published, consumed) = round(&case);
        published.replies[1].audit.damaged = 1;
        let said = complaint(&case, MESSAGES, &published, &consumed);
        assert_eq!(said.as_deref(), Some("1 of 3 replies arrived with another body"));
        let said = complaint(&case, MESSAGES + 1, &round(&case).0, &consumed);
        assert_eq!(said.as_deref(), Some("3 of 4 messages were sent"));
    }

    #[test]
    fn the_baselines_pieces_are_compared_and_have_no_replies() {
        let case = Case::baseline();
        let (mut published, mut consumed) = round(&case);
        published.replies.clear();
        assert_eq!(complaint(&case, 1_000, &published, &consumed), None);
        consumed.audits[0].out_of_order = 1;
        let said = complaint(&case, 1_000, &published, &consumed);
        assert_eq!(said.as_deref(), Some("1 of 3 pieces arrived out of order"));
    }
}
