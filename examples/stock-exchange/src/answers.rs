//! What the engine answers, and whether what has come is that: each answer once, in its order.

use crate::book::{Book, Fill, Rule};
use crate::messages::{Message, Order};

/// How many answers there were, and a digest of them in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u32,
    /// Another where one is another, or in another place.
    pub digest: u64,
}

impl Tally {
    /// Adds the next answer, as its bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        /// An odd number with bits all over it: the fraction of the golden ratio.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        self.count += 1;
        // Answers are of different lengths only where their first bytes differ, so padding makes no two the same.
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let sum = self.digest.rotate_left(5) ^ u64::from_be_bytes(word);
            self.digest = sum.wrapping_mul(SPREAD);
        }
    }
}

/// The book with what is answered to each order: always the same to the same orders, so that what has to come is known
/// without a broker.
#[derive(Debug)]
pub struct AnsweringBook {
    book: Book,
    quote: (u16, u16),
}

impl AnsweringBook {
    /// Returns an empty book.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { book: Book::new(rule), quote: (0, 0) }
    }

    /// Takes an order; `answer` is called for each answer: trades or a confirmation, then a quote if it is another.
    pub fn take(&mut self, order: &Order, mut answer: impl FnMut(Message)) {
        let (id, mut trades) = (order.id, false);
        self.book.take(order, |Fill { resting, price, quantity }| {
            trades = true;
            answer(Message::Traded { id, resting, price, quantity });
        });
        if !trades {
            answer(Message::Confirmed { id });
        }
        let quote = self.book.quote();
        if std::mem::replace(&mut self.quote, quote) != quote {
            answer(Message::Quote { bid: quote.0, ask: quote.1 });
        }
    }

    /// Returns the book.
    #[must_use]
    pub const fn book(&self) -> &Book {
        &self.book
    }
}

/// Takes answers as they come, and finds out whether one is lost, doubled or out of order: by what they say, and at the end
/// by the [`Tally`] of who sent them.
#[derive(Debug, Default)]
pub struct AnswerCheck {
    tally: Tally,
    /// What may come again is numbered.
    next_number: u32,
    /// Answered are all orders before this one.
    next_order: u32,
    /// To the order before that.
    last: Option<Message>,
    quote: Option<(u16, u16)>,
    is_closed: bool,
}

impl AnswerCheck {
    /// Takes what came next; returns the order that it is the first answer to.
    ///
    /// # Errors
    /// What was lost, doubled or out of order, or is no answer.
    pub fn take(
        &mut self,
        number: Option<u32>,
        message: &Message,
        bytes: &[u8],
    ) -> Result<Option<u32>, String> {
        if let Some(number) = number {
            if number < self.next_number {
                return Ok(None);
            }
            if number > self.next_number {
                let due = self.next_number;
                return Err(format!("answer {number} where {due} was due: lost or out of order"));
            }
            self.next_number += 1;
        }
        if self.is_closed {
            return Err(format!("{message:?} behind the last answer: doubled or out of order"));
        }
        if let Message::Closing { count, digest } = *message {
            self.is_closed = true;
            return self.compare(Tally { count, digest }).map(|()| None);
        }
        self.tally.add(bytes);
        match *message {
            Message::Confirmed { id } | Message::Traded { id, .. } => self.order(id, message),
            Message::Quote { bid, ask } => {
                // A quote is sent when it is another than the last.
                match self.quote.replace((bid, ask)) == Some((bid, ask)) {
                    true => Err(format!("the quote {bid}, {ask} twice: doubled, or one is lost")),
                    false => Ok(None),
                }
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn order(&mut self, id: u32, message: &Message) -> Result<Option<u32>, String> {
        let last = self.last.replace(*message);
        let due = self.next_order;
        if id == due {
            self.next_order += 1;
            return Ok(Some(id));
        }
        if id > due {
            return Err(format!(
                "an answer to order {id} where one to {due} was due: lost or out of order"
            ));
        }
        match (last, message) {
            // It trades with each order once.
            (
                Some(Message::Traded { id: same, resting: before, .. }),
                Message::Traded { resting, .. },
            ) if same == id && before != *resting => Ok(None),
            _ => Err(format!(
                "an answer to order {id} behind one to {}: doubled or out of order",
                due - 1
            )),
        }
    }

    fn compare(&self, sent: Tally) -> Result<(), String> {
        let (came, sent_count) = (self.tally.count, sent.count);
        if came != sent_count {
            let what = if came < sent_count { "lost" } else { "doubled" };
            return Err(format!("{came} answers where {sent_count} were sent: {what}"));
        }
        match self.tally.digest == sent.digest {
            true => Ok(()),
            false => Err(format!("{came} answers in another order, or others, than were sent")),
        }
    }

    /// Returns the tally of what has come, each once.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns how many orders are answered.
    #[must_use]
    pub const fn orders(&self) -> u32 {
        self.next_order
    }

    /// Returns whether all has come that was sent.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::orders::Orders;

    fn bytes(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    }

    /// Returns the answers to some orders, and their end.
    fn answers(seed: u64, orders: usize, rule: Rule) -> Vec<Message> {
        let (mut book, mut tally, mut answers) =
            (AnsweringBook::new(rule), Tally::default(), Vec::new());
        for order in Orders::new(seed).take(orders) {
            book.take(&order, |answer| answers.push(answer));
        }
        answers.iter().for_each(|answer| tally.add(&bytes(answer)));
        answers.push(Message::Closing { count: tally.count, digest: tally.digest });
        answers
    }

    fn check(answers: &[Message]) -> Result<AnswerCheck, String> {
        let mut check = AnswerCheck::default();
        for answer in answers {
            check.take(None, answer, &bytes(answer))?;
        }
        Ok(check)
    }

    #[derive(Clone, Copy, Debug)]
    enum Fault {
        Lose,
        Double,
        Swap,
    }

    proptest! {
        #[test]
        fn an_answer_that_is_lost_doubled_or_out_of_order_is_noticed(
            seed: u64,
            price_time: bool,
            at: prop::sample::Index,
            fault in prop::sample::select(vec![Fault::Lose, Fault::Double, Fault::Swap]),
        ) {
            let rule = if price_time { Rule::PriceTime } else { Rule::Exact };
            let mut answers = answers(seed, 500, rule);
            let whole = check(&answers).unwrap();
            prop_assert!(whole.is_closed() && whole.orders() == 500);
            prop_assert_eq!(whole.tally().count as usize, answers.len() - 1);
            let at = at.index(answers.len() - 1);
            match fault {
                Fault::Lose => drop(answers.remove(at)),
                Fault::Double => answers.insert(at, answers[at]),
                Fault::Swap => answers.swap(at, at + 1),
            }
            prop_assert!(check(&answers).is_err(), "{fault:?} of answer {at}");
        }

        #[test]
        fn numbered_answers_may_come_again(seed: u64, from: prop::sample::Index, to: prop::sample::Index) {
            let answers: Vec<_> = (0..).zip(answers(seed, 200, Rule::Exact)).collect();
            let (to, mut check) = (to.index(answers.len()), AnswerCheck::default());
            let again = &answers[from.index(to + 1)..];
            for (number, answer) in answers[..=to].iter().chain(again) {
                check.take(Some(*number), answer, &bytes(answer)).unwrap();
            }
            prop_assert!(check.is_closed());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let trade = |id, resting| Message::Traded { id, resting, price: 5, quantity: 1 };
        let [zero, one, two] = [0, 1, 2].map(|id| Message::Confirmed { id });
        let quote = Message::Quote { bid: 0, ask: 5 };
        let end = |count| Message::Closing { count, digest: 0 };
        for (answers, said) in [
            (vec![zero, two], "order 2 where one to 1 was due"),
            (vec![zero, one, zero], "order 0 behind one to 1"),
            (vec![zero, zero], "order 0 behind one to 0"),
            (vec![zero, trade(1, 0), trade(1, 0)], "order 1 behind one to 1"),
            (vec![zero, quote, quote], "the quote 0, 5 twice"),
            (vec![zero, end(2)], "1 answers where 2 were sent: lost"),
            (vec![zero, quote, end(1)], "2 answers where 1 were sent: doubled"),
            (vec![zero, end(1)], "1 answers in another order, or others"),
            (vec![trade(0, 9), trade(0, 8), trade(0, 7), end(4)], "3 answers where 4"),
            (vec![end(0), zero], "behind the last answer"),
        ] {
            let error = check(&answers).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let mut check = AnswerCheck::default();
        assert_eq!(check.take(Some(0), &zero, &bytes(&zero)), Ok(Some(0)));
        let lost = check.take(Some(2), &two, &bytes(&two)).unwrap_err();
        assert!(lost.contains("answer 2 where 1 was due"), "{lost}");
    }
}
