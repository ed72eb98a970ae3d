//! Frames of every kind, at random.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use quelea_elastic_proto::frame::{
    Acknowledge, AttachListener, Capacity, ErrorCode, Frame, Gap, GapCause, Hello, Host,
    NoticeCode, OpenListener, OpenProducer, ProducerReport, Register, RelayAddress, RelaySettings,
    Report, Role, SlowPolicy, Start, Welcome, WireError,
};
use quelea_elastic_proto::limits::{DIRECTORIES_MAX, SEQUENCE_MAX};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, Named, RelayId, Slot, parts};

/// Returns a strategy for any frame that may be sent.
pub(crate) fn any_frame() -> BoxedStrategy<Frame> {
    prop_oneof![greeting(), to_directory(), from_directory(), messages(), of_relay(), of_keeper()]
        .boxed()
}

/// Returns a strategy for any message's parts, encoded.
pub(crate) fn message() -> impl Strategy<Value = Bytes> {
    vec(vec(any::<u8>(), 0..400), 1..5)
        .prop_map(|bodies| parts::encode(&bodies).expect("a few small parts"))
}

fn greeting() -> BoxedStrategy<Frame> {
    let role = prop_oneof![
        Just(Role::Client),
        Just(Role::Relay),
        Just(Role::Keeper),
        Just(Role::Directory)
    ];
    prop_oneof![
        (any::<u16>(), role, text(), bytes()).prop_map(|(version, role, name, key)| {
            Frame::Hello(Hello { version, role, name, key })
        }),
        (any::<u16>(), any::<u32>())
            .prop_map(|(version, heartbeat_ms)| Frame::Welcome(Welcome { version, heartbeat_ms })),
        (error_code(), text(), text(), any::<bool>()).prop_map(|(code, field, text, fatal)| {
            Frame::Error(WireError { code, field, text, fatal })
        }),
        any::<u64>().prop_map(Frame::Ping),
        any::<u64>().prop_map(Frame::Pong),
        text().prop_map(Frame::Bye),
    ]
    .boxed()
}

fn to_directory() -> BoxedStrategy<Frame> {
    let current = option::of((relay(), epoch(), sequence()));
    prop_oneof![
        (queue(), client(), current, any::<u64>()).prop_map(
            |(queue, producer, current, expected_bytes_per_s)| {
                Frame::OpenProducer(OpenProducer { queue, producer, current, expected_bytes_per_s })
            }
        ),
        (queue(), client(), vec(relay(), 0..5)).prop_map(|(queue, listener, attached)| {
            Frame::OpenListener(OpenListener { queue, listener, attached })
        }),
        (queue(), client(), epoch(), relay(), sequence()).prop_map(
            |(queue, producer, epoch, relay, first)| {
                Frame::Producing { queue, producer, epoch, relay, first }
            }
        ),
        (queue(), client(), epoch(), relay(), text()).prop_map(
            |(queue, producer, epoch, relay, cause)| {
                Frame::ProduceFailed { queue, producer, epoch, relay, cause }
            }
        ),
        (queue(), client(), any::<u64>(), vec(relay(), 0..5)).prop_map(
            |(queue, listener, generation, relays)| {
                Frame::Listening { queue, listener, generation, relays }
            }
        ),
        (queue(), client(), relay(), text()).prop_map(|(queue, client, relay, cause)| {
            Frame::RelayLost { queue, client, relay, cause }
        }),
        (queue(), client()).prop_map(|(queue, client)| Frame::Close { queue, client }),
    ]
    .boxed()
}

fn from_directory() -> BoxedStrategy<Frame> {
    let notice = prop_oneof![
        Just(NoticeCode::BudgetSpent),
        Just(NoticeCode::Unsplittable),
        Just(NoticeCode::AtMaximum),
        Just(NoticeCode::ProviderFailing)
    ];
    prop_oneof![
        (queue(), client(), fence(), epoch(), address()).prop_map(
            |(queue, producer, fence, epoch, relay)| {
                Frame::ProduceAt { queue, producer, fence, epoch, relay }
            }
        ),
        (queue(), client(), fence(), any::<u64>(), vec(address(), 0..5)).prop_map(
            |(queue, listener, fence, generation, relays)| {
                Frame::ListenAt { queue, listener, fence, generation, relays }
            }
        ),
        (queue(), text(), any::<u32>()).prop_map(|(queue, address, retry_after_ms)| {
            Frame::Redirect { queue, address, retry_after_ms }
        }),
        (queue(), notice, text())
            .prop_map(|(queue, code, text)| { Frame::Notice { queue, code, text } }),
        directories().prop_map(|all| Frame::Directories(all.into())),
    ]
    .boxed()
}

fn messages() -> BoxedStrategy<Frame> {
    let prefixes = vec(bytes(), 0..5);
    prop_oneof![
        (queue(), client(), fence(), epoch()).prop_map(|(queue, producer, fence, epoch)| {
            Frame::AttachProducer { queue, producer, fence, epoch }
        }),
        (queue(), client(), option::of(slow()), prefixes).prop_map(
            |(queue, listener, slow, prefixes)| {
                Frame::AttachListener(AttachListener { queue, listener, slow, prefixes })
            }
        ),
        bytes().prop_map(Frame::Subscribe),
        bytes().prop_map(Frame::Unsubscribe),
        any::<u64>().prop_map(Frame::Received),
        (slot(), acknowledge(), any::<u64>()).prop_map(|(slot, acknowledge, credit_bytes)| {
            Frame::Attached { slot, acknowledge, credit_bytes }
        }),
        (slot(), any::<u64>()).prop_map(|(slot, bytes)| Frame::Credit { slot, bytes }),
        (slot(), sequence()).prop_map(|(slot, below)| Frame::Ack { slot, below }),
        (slot(), sequence(), sequence(), any::<u64>(), gap_cause()).prop_map(
            |(slot, from, to, messages, cause)| {
                Frame::Gap(Gap { slot, from, to, messages, cause })
            }
        ),
        any::<u32>().prop_map(|deadline_ms| Frame::Draining { deadline_ms }),
        (slot(), client(), epoch(), sequence(), epoch()).prop_map(
            |(slot, producer, epoch, first, previous)| {
                Frame::Start(Start { slot, producer, epoch, first, previous })
            }
        ),
        (slot(), sequence(), message()).prop_map(|(slot, sequence, parts)| Frame::Data {
            slot,
            sequence,
            parts
        }),
        (slot(), sequence()).prop_map(|(slot, next)| Frame::Fin { slot, next }),
        (client(), client(), sequence()).prop_map(|(producer, listener, below)| Frame::Missed {
            producer,
            listener,
            below
        }),
    ]
    .boxed()
}

fn of_relay() -> BoxedStrategy<Frame> {
    let register = (relay(), queue(), text(), text(), (text(), text()), capacity(), fence())
        .prop_map(|(relay, queue, request, address, zmtp, capacity, fence)| {
            Frame::Register(Register { relay, queue, request, address, zmtp, capacity, fence })
        });
    prop_oneof![
        register,
        (fence(), settings()).prop_map(|(fence, settings)| Frame::Registered { fence, settings }),
        (vec(any::<u32>(), 13), vec(producer_report(), 0..4)).prop_map(report),
        any::<[u64; 4]>().prop_map(|[memory_bytes, memory_bytes_max, bytes_in, bytes_out]| {
            Frame::Host(Host {
                memory_bytes,
                memory_bytes_max,
                network_in_bytes: bytes_in,
                network_out_bytes: bytes_out,
            })
        }),
        (fence(), any::<u32>())
            .prop_map(|(fence, deadline_ms)| Frame::Drain { fence, deadline_ms }),
        fence().prop_map(|fence| Frame::Stop { fence }),
        (fence(), client(), epoch()).prop_map(|(fence, producer, below)| {
            Frame::FenceProducer { fence, producer, below }
        }),
    ]
    .boxed()
}

fn of_keeper() -> BoxedStrategy<Frame> {
    prop_oneof![
        (queue(), queue()).prop_map(|(queue, target)| Frame::KeepOpen { queue, target }),
        (client(), sequence(), vec(message(), 0..4))
            .prop_map(|(producer, first, messages)| { Frame::Keep { producer, first, messages } }),
        (client(), sequence()).prop_map(|(producer, below)| Frame::Kept { producer, below }),
    ]
    .boxed()
}

fn report((numbers, producers): (Vec<u32>, Vec<ProducerReport>)) -> Frame {
    let wide = |index: usize| u64::from(numbers[index]) << (index % 33);
    Frame::Report(Report {
        number: wide(0),
        uptime_ms: wide(1),
        messages_in: wide(2),
        bytes_in: wide(3),
        messages_out: wide(4),
        bytes_out: wide(5),
        dropped: wide(6),
        spilled: wide(0) ^ wide(6),
        left_behind: wide(1) ^ wide(6),
        listeners: numbers[7],
        cpu_us: wide(8),
        queued_bytes: wide(9),
        latency_mean_us: numbers[10],
        latency_p99_us: numbers[11],
        drained: numbers[12].is_multiple_of(2),
        more: numbers[12].is_multiple_of(3),
        producers,
    })
}

fn producer_report() -> impl Strategy<Value = ProducerReport> {
    (client(), epoch(), sequence(), any::<[u64; 3]>(), any::<bool>()).prop_map(
        |(producer, epoch, next, [messages, bytes, bytes_out], foreign)| ProducerReport {
            producer,
            epoch,
            next,
            messages,
            bytes,
            bytes_out,
            foreign,
        },
    )
}

fn capacity() -> impl Strategy<Value = Capacity> {
    (any::<[u64; 4]>(), any::<u32>()).prop_map(|(rates, connections)| Capacity {
        bytes_in_per_s: rates[0],
        bytes_out_per_s: rates[1],
        messages_in_per_s: rates[2],
        messages_out_per_s: rates[3],
        connections,
    })
}

fn settings() -> impl Strategy<Value = RelaySettings> {
    (acknowledge(), slow(), any::<u64>(), any::<u32>(), (text(), text())).prop_map(
        |(acknowledge, slow, ring_bytes_max, report_ms, keep)| RelaySettings {
            acknowledge,
            slow,
            ring_bytes_max,
            report_ms,
            keep,
        },
    )
}

fn directories() -> impl Strategy<Value = Vec<String>> {
    vec("[a-z0-9.]{1,20}:[0-9]{1,5}", 0..=DIRECTORIES_MAX)
}

fn error_code() -> impl Strategy<Value = ErrorCode> {
    use ErrorCode::{
        Budget, Fenced, Key, Limit, Malformed, Order, Queue, TooSlow, Unavailable, Value, Version,
    };
    proptest::sample::select(vec![
        Malformed,
        Version,
        Key,
        Queue,
        Value,
        Limit,
        Fenced,
        Unavailable,
        Order,
        TooSlow,
        Budget,
    ])
}

fn slow() -> impl Strategy<Value = SlowPolicy> {
    let policies: Vec<SlowPolicy> = SlowPolicy::NAMES.iter().map(|(_, policy)| *policy).collect();
    proptest::sample::select(policies)
}

fn acknowledge() -> impl Strategy<Value = Acknowledge> {
    use Acknowledge::{Delivered, Relayed, Stored};
    proptest::sample::select(vec![Relayed, Delivered, Stored])
}

fn gap_cause() -> impl Strategy<Value = GapCause> {
    use GapCause::{Deadline, ProducerLost, RelayLost, TooSlow};
    proptest::sample::select(vec![TooSlow, RelayLost, ProducerLost, Deadline])
}

fn address() -> impl Strategy<Value = RelayAddress> {
    (relay(), text()).prop_map(|(relay, address)| RelayAddress { relay, address })
}

fn queue() -> impl Strategy<Value = String> {
    "[a-zäß]{1,20}"
}

fn text() -> impl Strategy<Value = String> {
    "[ -~é]{0,30}"
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn client() -> impl Strategy<Value = ClientId> {
    any::<u128>().prop_map(ClientId)
}

fn relay() -> impl Strategy<Value = RelayId> {
    any::<u64>().prop_map(RelayId)
}

fn fence() -> impl Strategy<Value = Fence> {
    any::<u64>().prop_map(Fence)
}

fn epoch() -> impl Strategy<Value = Epoch> {
    any::<u64>().prop_map(Epoch)
}

fn sequence() -> impl Strategy<Value = MessageSeq> {
    (0..=SEQUENCE_MAX).prop_map(MessageSeq)
}

fn slot() -> impl Strategy<Value = Slot> {
    any::<u32>().prop_map(Slot)
}
