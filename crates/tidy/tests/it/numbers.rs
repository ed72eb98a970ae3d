//! A number that a page states is the constant's in the code.

use quelea_tidy::Repository;

use crate::{assert_none, in_one_line, is_within};

const CORE: &str = "crates/core/model/src/limits.rs";
const CMQ: &str = "crates/cmq/proto/src/limits.rs";
const ELASTIC: &str = "crates/elastic/proto/src/limits.rs";
const RELAY: &str = "crates/elastic/core/src/relay/limits.rs";
const MANAGEMENT: &str = "crates/management/src/limits.rs";
const SQS: &str = "crates/sqs/protocol/src/limits.rs";
const SQS_SERVER: &str = "crates/sqs/server/src/limits.rs";
const ZMTP: &str = "crates/elastic/zmtp/src/limits.rs";
const PACE: &str = "crates/core/broker/src/queues/queue/pace.rs";
const FLOW: &str = "crates/core/broker/src/messaging/flow_control.rs";
const REPLICATED: &str = "crates/cassandra/store/src/limits.rs";
const API: &str = "docs/operate/management-api.md";
const LIMITS: &str = "docs/operate/limits.md";
const MAP: &str = "ARCHITECTURE.md";

/// A page, its words around the number, which is `{}`, and where the constant stands.
const STATED: &[(&str, &str, &str, &str)] = &[
    (LIMITS, "| frame | {} (", CORE, "FRAME_BYTES_MAX"),
    (LIMITS, "| channels of a connection | {} (", CORE, "CHANNELS_MAX"),
    (LIMITS, "| body of a message | {} (", CORE, "MESSAGE_BYTES_MAX"),
    (LIMITS, "close-ok | {} (`amqp.handshake_timeout_ms`)", CORE, "HANDSHAKE_TIMEOUT_MS"),
    (LIMITS, "(`amqp.handshake_timeout_ms`); {} |", CORE, "CLOSE_OK_TIMEOUT_MS"),
    (LIMITS, "of a connection | {}, or two of the", CORE, "UNFINISHED_MESSAGES_BYTES_MAX"),
    (LIMITS, "| field table | {} levels", CORE, "TABLE_DEPTH_MAX"),
    (LIMITS, "levels, {} entries |", CORE, "TABLE_ENTRIES_MAX"),
    (LIMITS, "| name, routing key | {} bytes", CORE, "SHORT_STRING_BYTES_MAX"),
    (LIMITS, "on a channel | {} |", CORE, "UNACKED_PER_CHANNEL_MAX"),
    (LIMITS, "unacknowledged on a connection | {} |", CORE, "UNACKED_PER_CONNECTION_MAX"),
    (LIMITS, "read by one connection | {} |", CORE, "OUTPUT_BYTES_MAX"),
    (LIMITS, "| consumers of a connection | {} |", CORE, "CONSUMERS_PER_CONNECTION_MAX"),
    (LIMITS, "binding or consumer | {}, ", CORE, "ARGUMENT_BYTES_MAX"),
    (LIMITS, "KiB, {} entries | 406", CORE, "ARGUMENT_ENTRIES_MAX"),
    (
        LIMITS,
        "| exclusive queues of a connection | {} |",
        CORE,
        "EXCLUSIVE_QUEUES_PER_CONNECTION_MAX",
    ),
    (LIMITS, "of a virtual host | {}; ", CORE, "QUEUES_PER_VHOST_MAX"),
    (LIMITS, "000; {}; 1,", CORE, "EXCHANGES_PER_VHOST_MAX"),
    (LIMITS, "; {} | 406 with the limit |", CORE, "BINDINGS_PER_VHOST_MAX"),
    (LIMITS, "a connection that wait for the disk | {} |", CORE, "PROMISES_WAITING_MAX"),
    (LIMITS, "exchange's patterns | {} steps", CORE, "TOPIC_STEPS_MAX"),
    (LIMITS, "key, {} different beginnings", CORE, "TOPIC_NODES_MAX"),
    (LIMITS, "exchange's bindings | {} steps", CORE, "HEADERS_STEPS_MAX"),
    (LIMITS, "and its headers | {} steps", CORE, "ROUTE_STEPS_MAX"),
    (LIMITS, "beginnings; {} separate", CORE, "TOPIC_HASHES_MAX"),
    (LIMITS, "| a transaction | {} operations", CORE, "TX_OPERATIONS_MAX"),
    (LIMITS, "operations, {}; ", CORE, "TX_BYTES_MAX"),
    (LIMITS, "MiB; {} queues that its messages", CORE, "TX_TARGETS_MAX"),
    (LIMITS, "| bodies in memory | {} (", CORE, "RESIDENT_BYTES_MAX"),
    (LIMITS, "| index in memory | {} (", CORE, "INDEX_BYTES_MAX"),
    (LIMITS, "through SQS, of a queue | {} |", CORE, "IN_FLIGHT_MAX"),
    (LIMITS, "| receives that wait | {} |", CORE, "RECEIVES_WAITING_MAX"),
    (LIMITS, "queues' messages at once | {} |", CORE, "BROWSES_WAITING_MAX"),
    (LIMITS, "within five minutes | {} |", CORE, "DEDUPLICATIONS_PER_QUEUE_MAX"),
    (LIMITS, "groups and deduplication ids | {} |", CORE, "HELD_BYTES_MAX"),
    (LIMITS, "answer to a receive | {},", CORE, "RECEIVE_BYTES_MAX"),
    (LIMITS, "of the management API | {} (", MANAGEMENT, "CONNECTIONS_MAX"),
    (LIMITS, "management API, a second | {} (", MANAGEMENT, "REQUESTS_PER_S_MAX"),
    (LIMITS, "its head and then its body | {} (", MANAGEMENT, "REQUEST_TIMEOUT_MS"),
    ("docs/operate/management-api.md", "for some {} of each", MANAGEMENT, "SAMPLED_OBJECTS_MAX"),
    (LIMITS, "that wait to be verified | {} |", CORE, "LOGINS_WAITING_MAX"),
    (LIMITS, "its password is verified | {} |", CORE, "EARLY_BYTES_MAX"),
    (LIMITS, "answers no keepalive | {} |", CORE, "STALLED_WRITE_MS_MAX"),
    (LIMITS, "| connections of SQS | {} (", SQS_SERVER, "CONNECTIONS_MAX"),
    (LIMITS, "that arrive or are served | {};", SQS_SERVER, "BODIES_BYTES_MAX"),
    (LIMITS, "SQS's clients do not read | {};", SQS_SERVER, "BODIES_BYTES_MAX"),
    (LIMITS, "of a long answer for {} is closed", SQS_SERVER, "UNREAD_MS_MAX"),
    (LIMITS, "entry for ZeroMQ's sockets | {} (", ZMTP, "ENTRY_CONNECTIONS_MAX"),
    ("docs/elastic/zmtp.md", "| PUBs at one entry | {} |", ZMTP, "PUBS_PER_ENTRY_MAX"),
    (LIMITS, "what the broker keeps | {}, and", ELASTIC, "RELAYS_MAX"),
    (LIMITS, "definitions; a list's page | {};", MANAGEMENT, "BODY_BYTES_MAX"),
    (LIMITS, "1 MiB; {}, one import", MANAGEMENT, "DEFINITIONS_BYTES_MAX"),
    (LIMITS, "import at a time; {} objects", MANAGEMENT, "PAGE_SIZE_MAX"),
    (LIMITS, "of the management API returns | {},", MANAGEMENT, "GET_MESSAGES_MAX"),
    (LIMITS, "10,000, or {}; four", MANAGEMENT, "GET_BYTES_MAX"),
    (LIMITS, "8 MiB; {} at a time", MANAGEMENT, "GETS_MAX"),
    (LIMITS, "through topic and headers exchanges | {} steps", CORE, "ROUTE_STEPS_MAX"),
    (LIMITS, "all queues of its virtual host, {}:", CORE, "QUEUES_PER_VHOST_MAX"),
    (LIMITS, "| its {} operations, 250,000", CORE, "TX_OPERATIONS_MAX"),
    (LIMITS, "65,536 operations, {} queues that they", CORE, "TX_TARGETS_MAX"),
    (LIMITS, "deliveries that it settles, {} |", CORE, "UNACKED_PER_CHANNEL_MAX"),
    (LIMITS, "| a look at each, {} |", CORE, "UNACKED_PER_CHANNEL_MAX"),
    (
        LIMITS,
        "consumers in a turn | {} of a queue",
        "crates/core/broker/src/messaging/dispatch.rs",
        "DELIVERIES_PER_TURN",
    ),
    (
        LIMITS,
        "of a queue, of {} queues, 16,384",
        "crates/core/broker/src/messaging.rs",
        "QUEUES_PER_TURN",
    ),
    (
        LIMITS,
        "of 256 queues, {} in all",
        "crates/core/broker/src/messaging.rs",
        "EFFECTS_WAITING_MAX",
    ),
    (
        LIMITS,
        "entries of a checkpoint in a turn | {} |",
        "crates/core/broker/src/checkpoint.rs",
        "ENTRIES_PER_SLICE",
    ),
    (
        LIMITS,
        "of which {} are kept for the log",
        "crates/core/node/src/file_limit.rs",
        "OTHER_FILES",
    ),
    (LIMITS, "{} messages or 8 MiB of bodies", FLOW, "CROWDED_MESSAGES"),
    (LIMITS, "4,096 messages or {} of bodies", FLOW, "CROWDED_BYTES"),
    (LIMITS, "in windows of {} ms;", FLOW, "WINDOW_MS"),
    (LIMITS, "consumers take {} a second or", PACE, "TAKEN_PER_S_MIN"),
    (LIMITS, "a second or {}/s or more", PACE, "TAKEN_BYTES_PER_S_MIN"),
    (API, "looks at up to {} of the oldest", SQS, "PEEKED_MESSAGES_MAX"),
    (API, "ends at `count`, at {}, or", SQS, "PEEKED_BYTES_MAX"),
    (API, "has read {} partitions", REPLICATED, "PEEKED_BUCKETS_MAX"),
    (API, "  within {}, `state`", REPLICATED, "PEEKED_OWNER_MS_MAX"),
    ("docs/cassandra/running.md", "sends\n  beyond {} that wait", REPLICATED, "WAITING_BYTES_MAX"),
    ("docs/cassandra/running.md", "or {} in all, and more", REPLICATED, "WAITING_BYTES_IN_ALL_MAX"),
    ("docs/cassandra/running.md", "more than {} changes of", REPLICATED, "VISIBILITY_CHANGES_MAX"),
    ("docs/cassandra/running.md", "turns: {} queues are", REPLICATED, "SWEPT_QUEUES_AT_ONCE"),
    ("docs/sqs/service.md", "| queue name | {} letters", SQS, "QUEUE_NAME_LENGTH_MAX"),
    ("docs/sqs/service.md", "of its attributes | {}, or", SQS, "MESSAGE_BYTES_MAX"),
    ("docs/sqs/service.md", "| batch | {} entries", SQS, "BATCH_ENTRIES_MAX"),
    ("docs/sqs/service.md", "| message attributes | {};", SQS, "MESSAGE_ATTRIBUTES_MAX"),
    ("docs/sqs/service.md", "shorter than {} bytes", SQS, "ATTRIBUTE_NAME_BYTES_MAX"),
    ("docs/sqs/service.md", "visibility timeout | {} s;", SQS, "DELAY_S_MAX"),
    ("docs/sqs/service.md", "900 s; {} s; 12 h", SQS, "WAIT_S_MAX"),
    ("docs/sqs/service.md", "| tags | {};", SQS, "TAGS_MAX"),
    ("docs/sqs/service.md", "keys of {},", SQS, "TAG_KEY_LENGTH_MAX"),
    ("docs/sqs/service.md", "values of {} letters", SQS, "TAG_VALUE_LENGTH_MAX"),
    ("docs/sqs/accounts.md", "at most {} bytes, ", SQS, "POLICY_BYTES_MAX"),
    ("docs/sqs/accounts.md", "bytes, {} statements", SQS, "STATEMENTS_MAX"),
    ("docs/sqs/accounts.md", "statements, {}\nprincipals", SQS, "PRINCIPALS_MAX"),
    ("docs/sqs/accounts.md", "principals and {} conditions", SQS, "CONDITIONS_MAX"),
    ("docs/sqs/protocol.md", "at most {} list items", SQS, "REQUEST_ITEMS_MAX"),
    ("docs/sqs/protocol.md", "at most {} parameters", SQS, "QUERY_PARAMETERS_MAX"),
    ("docs/elastic/clients.md", "with all its parts | {}, ", ELASTIC, "MESSAGE_BYTES_MAX"),
    ("docs/elastic/clients.md", "MiB, {} parts |", ELASTIC, "PARTS_MAX"),
    ("docs/elastic/clients.md", "prefixes of a listener | {} bytes", ELASTIC, "PREFIX_BYTES_MAX"),
    ("docs/elastic/clients.md", "bytes; {} |", ELASTIC, "PREFIXES_MAX"),
    ("docs/elastic/clients.md", "at least {}; ", ELASTIC, "PRODUCER_WINDOW_BYTES_MIN"),
    ("docs/elastic/clients.md", "; {} by default.", ELASTIC, "PRODUCER_WINDOW_BYTES"),
    ("docs/elastic/clients.md", "listener's program | {} and", ELASTIC, "LISTENER_BYTES_MAX"),
    ("docs/elastic/clients.md", "MiB and {} messages", ELASTIC, "LISTENER_EVENTS_MAX"),
    ("docs/elastic/clients.md", "listener follows | {};", ELASTIC, "RELAYS_MAX"),
    ("docs/elastic/clients.md", "; {} |\n| key", ELASTIC, "LISTENER_SLOTS_MAX"),
    ("docs/elastic/clients.md", "client's name | {} bytes", ELASTIC, "KEY_BYTES_MAX"),
    ("docs/elastic/clients.md", "bytes; {} bytes |", ELASTIC, "NAME_BYTES_MAX"),
    ("docs/formats/elastic.md", "| DATA's parts | {} |", ELASTIC, "MESSAGE_BYTES_MAX"),
    ("docs/formats/elastic.md", "| KEEP's body | {} |", ELASTIC, "KEEP_BYTES_MAX"),
    ("docs/formats/elastic.md", "any other body | {};", ELASTIC, "CONTROL_BYTES_MAX"),
    ("docs/formats/elastic.md", "; {} bytes before the greeting", ELASTIC, "GREETING_BYTES_MAX"),
    ("docs/formats/elastic.md", "`HOST:PORT` of at most {},", ELASTIC, "ADDRESS_BYTES_MAX"),
    ("docs/formats/elastic.md", "producers` list, ≤ {}.", ELASTIC, "REPORT_PRODUCERS_MAX"),
    (
        "docs/formats/elastic.md",
        "producers on one connection | {} |",
        RELAY,
        "SLOTS_PER_CLIENT_MAX",
    ),
    ("docs/formats/elastic.md", "wait for one client | {};", RELAY, "CONTROL_BYTES_MAX"),
    ("docs/elastic/relay.md", "also full at {} entries", RELAY, "RING_ITEMS_MAX"),
    ("docs/elastic/relay.md", "remembers at most {} stretches", RELAY, "AWAITING_MAX"),
    ("docs/elastic/relay.md", "`--ring-bytes SIZE` | {} |", RELAY, "RING_BYTES_DEFAULT"),
    ("docs/elastic/relay.md", "its producers {} of credit", RELAY, "WINDOW_BYTES"),
    ("docs/elastic/relay.md", "at least {} and at most", RELAY, "WINDOW_BYTES_MIN"),
    ("docs/elastic/relay.md", "and at most {}", RELAY, "WINDOW_BYTES_MAX"),
    ("docs/cmq/library.md", "At most `flows_max` senders ({})", CMQ, "FLOWS_MAX_DEFAULT"),
    (
        "docs/cmq/library.md",
        "`flows_per_address_max`\n({}) of one",
        CMQ,
        "FLOWS_PER_ADDRESS_MAX_DEFAULT",
    ),
    ("docs/cmq/library.md", "is one), and {} that", CMQ, "FLOWS_UNPROVEN_MAX"),
    ("docs/cmq/library.md", "Of the {} events that wait", CMQ, "EVENTS_MAX"),
    ("docs/cmq/pipes.md", "A message has at most {};", CMQ, "MESSAGE_BYTES_MAX_DEFAULT"),
    ("docs/cmq/pipes.md", "allows up to {},", CMQ, "MESSAGE_BYTES_MAX"),
    ("docs/formats/cmq.md", "of fragments, at most {} |", CMQ, "WINDOW_DATAGRAMS_MAX"),
    ("docs/formats/cmq.md", "whole message, at most {} |", CMQ, "MESSAGE_BYTES_MAX"),
    ("docs/formats/cmq.md", "of ranges, at most {} |", CMQ, "STATUS_RANGES_MAX"),
    ("docs/formats/cmq.md", "remembers the last {} sequences", CMQ, "WINDOW_DATAGRAMS_MAX"),
    (MAP, "gets an entry of {} bytes,", "crates/core/store/src/entry.rs", "size_of::<Entry>()"),
    (MAP, "(after {} of input,", "crates/elastic/relay/src/node.rs", "TURN_BYTES"),
    (MAP, "the kernel gets {} at most", "crates/elastic/relay/src/listener.rs", "UNSENT_BYTES_MAX"),
    (MAP, "{} relays at most owe a producer", ELASTIC, "RELAY_ATTACHMENTS_MAX"),
    (MAP, "most {} for it, and one connection", ELASTIC, "RELAYS_MAX"),
];

/// Numbers of a page all of whose numbers are held, that are no constant's, with what they are.
const NO_CONSTANTS: [(&str, &str, &str); 12] = [
    (LIMITS, "one for each 64 bytes of a term's value", "beside the algorithm, in `headers.rs`"),
    (LIMITS, "steps, some 20 ms |", "measured"),
    (LIMITS, "100,000: some 40 ms |", "measured"),
    (LIMITS, "go to, some 100 ms;", "measured"),
    (LIMITS, "have AMQP connections beyond 5,000 (", "a fifth of files, as the sentence says"),
    (LIMITS, "| 1,024 | 155 | 257 |", "computed, as `connection_limits.rs` has it"),
    (LIMITS, "| 4,096 | 776 | 1,285 |", "the same"),
    (MAP, "pauses for some 100 µs between turns", "what the timer makes of a pause, measured"),
    (MAP, "needs 16 ms and 8 MB at its first use and 0.23 ms to mend", "a library's, measured"),
    (MAP, "of ten is mended in 13 µs here", "measured"),
    (MAP, "Its 15 Mbit/s cannot be what goes out: one producer makes 45 Mbit/s", "the paper's"),
    (
        MAP,
        "put 57 % of the messages out of order, since shares differ in size, and claims 0.18 %",
        "simulated",
    ),
];

/// What makes a number of the map one that the code may have too.
const UNITS: [&str; 14] =
    ["byte", "bytes", "B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "µs", "ms", "s", "%", "Mbit/s"];

#[test]
fn every_limit_on_a_page_is_the_constant_in_the_code() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for (page, words, file, name) in STATED {
        let Some(value) = constant(&repository.read(file), name) else {
            faults.push(format!("{file}: no constant {name}"));
            continue;
        };
        let text = repository.read(page);
        let forms = forms(name, value);
        if !forms.iter().any(|form| text.contains(&words.replace("{}", form))) {
            faults.push(format!("{page}: {words:?} is not there with one of {forms:?} ({name})"));
        }
    }
    assert_none("numbers that are not the code's", &faults);
}

/// So that the map, and the page of limits, gain no number that nothing holds.
#[test]
fn every_number_of_the_map_and_of_the_limits_is_held_beside_the_code() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for whole in [MAP, LIMITS] {
        let text = in_one_line(&repository.read(whole));
        let stated = STATED.iter().filter(|(page, ..)| *page == whole);
        let held = stated.flat_map(|(_, words, file, name)| {
            let value = constant(&repository.read(file), name).unwrap_or_default();
            forms(name, value)
                .into_iter()
                .map(|form| words.replace("{}", &form))
                .collect::<Vec<_>>()
        });
        let others: Vec<&str> = NO_CONSTANTS
            .iter()
            .filter(|(page, ..)| *page == whole)
            .map(|(_, words, _)| *words)
            .collect();
        let known: Vec<String> =
            held.chain(others.iter().map(|words| (*words).to_owned())).collect();
        let not_held = measures(&text)
            .into_iter()
            .filter(|(at, _)| !known.iter().any(|words| is_within(&text, *at, words)))
            .map(|(_, number)| format!("{whole}: {number}: a row of STATED or of NO_CONSTANTS"));
        faults.extend(not_held);
        let gone = others.iter().filter(|words| !text.contains(**words));
        faults.extend(gone.map(|words| format!("{whole}: {words:?} is not there")));
    }
    assert_none("numbers that nothing holds", &faults);
}

/// Returns the numbers of a text that have a unit or several groups of digits, with their places.
fn measures(text: &str) -> Vec<(usize, String)> {
    let is_mark = |c: char| !(c.is_alphanumeric() || c == '%');
    let words: Vec<&str> = text.split(' ').collect();
    let mut next = 0;
    let pairs = words.iter().enumerate().filter_map(|(at, word)| {
        let place = next + word.len() - word.trim_start_matches(is_mark).len();
        next += word.len() + 1;
        let number = word.trim_matches(is_mark);
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',');
        let unit = words.get(at + 1).map_or("", |word| word.trim_matches(is_mark));
        let is_measure = UNITS.contains(&unit) || number.contains(',');
        (is_number && is_measure).then(|| (place, format!("{number} {unit}")))
    });
    pairs.collect()
}

/// Returns the value of a constant whose expression is made of integers, of constants of the same
/// file, and of `*`, `/`, `+` and `<<`; of a `size_of` it is what an assertion says.
fn constant(source: &str, name: &str) -> Option<u64> {
    let asserted = source.split_once(&format!("assert!({name} == "));
    if let Some((_, value)) = asserted {
        return number(value.split(|c: char| !c.is_ascii_digit() && c != '_').next()?);
    }
    let line = source.lines().find(|line| line.contains(&format!("const {name}:")))?;
    let (_, expression) = line.trim_end_matches(';').split_once(" = ")?;
    let product = |text: &str| -> Option<u64> {
        let factors = text.split(" * ").map(|factor| match factor.split_once(" << ") {
            Some((base, shift)) => Some(number(base)? << number(shift)?),
            None => number(factor).or_else(|| constant(source, factor)),
        });
        factors.product()
    };
    let term = |text: &str| match text.rsplit_once(" / ") {
        Some((dividend, divisor)) => product(dividend)?.checked_div(product(divisor)?),
        None => product(text),
    };
    expression.replace(['(', ')'], "").split(" + ").map(term).sum()
}

fn number(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
}

/// Small numbers as words, from none on.
pub(crate) const COUNTS: [&str; 13] = [
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// Returns how a page may write the number.
fn forms(name: &str, value: u64) -> Vec<String> {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    let mut forms = vec![groups.join(",")];
    if let Some(word) = usize::try_from(value).ok().and_then(|value| COUNTS.get(value)) {
        let (first, rest) = word.split_at(1);
        forms.extend([(*word).to_owned(), format!("{}{rest}", first.to_uppercase())]);
    }
    for (shift, unit) in [(10, "KiB"), (20, "MiB"), (30, "GiB")] {
        if value > 0 && value.is_multiple_of(1 << shift) && value >> shift < 1_024 {
            forms.extend([
                format!("{} {unit}", value >> shift),
                format!("{}{unit}", value >> shift),
            ]);
        }
    }
    if name.contains("_MS") && value.is_multiple_of(1_000) {
        forms.push(format!("{} s", value / 1_000));
    }
    forms
}

#[test]
fn a_constant_is_evaluated() {
    let source =
        "const A: u8 = 1_024;\npub const B: usize = A + (1 << 20);\nconst C_MS: u64 = 2 * 5_000;";
    assert_eq!(constant(source, "B"), Some(1_024 + (1 << 20)));
    assert_eq!(constant(source, "C_MS"), Some(10_000));
    assert_eq!(constant(source, "D"), None);
    assert_eq!(
        constant("const _: () = assert!(size_of::<E>() == 24, 9);", "size_of::<E>()"),
        Some(24)
    );
    assert_eq!(constant("const A: u8 = 6;\nconst B: u8 = 4 * A / 8;", "B"), Some(3));
    assert_eq!(forms("A", 8), ["8", "eight", "Eight"]);
    assert_eq!(forms("C_MS", 10_000), ["10,000", "10 s"]);
    assert_eq!(forms("A", 1 << 20), ["1,048,576", "1 MiB", "1MiB"]);
}

#[test]
fn numbers_with_units_are_found_in_prose() {
    let found = measures("At (8 KiB), 57 %; 4,096 of §2.1 and 3 relays: 1.5 ms.");
    let numbers: Vec<_> = found.iter().map(|(at, number)| (*at, number.as_str())).collect();
    assert_eq!(numbers, [(4, "8 KiB"), (12, "57 %"), (18, "4,096 of"), (47, "1.5 ms")]);
}
