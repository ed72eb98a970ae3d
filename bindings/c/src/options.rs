//! Options as structures that may grow: each says how large the caller knows it to be.

use std::mem::size_of;
use std::ptr;
use std::time::Duration;

use quelea_cmq::proto::limits;
use quelea_cmq::{
    Config, DestinationOptions, MailboxOptions, Mode, PreSharedKey, Repair, WhenFull, Wire,
};

use crate::code::Failure;

/// Bytes of a pre-shared key.
pub const QUELEA_CMQ_SECRET_BYTES: usize = 32;

/// Whose datagrams an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum QueleaCmqWire {
    /// Quelea's own.
    Quelea = 0,
    /// Those of the original library for a queue of String: 512 bytes and 200 ms unless set.
    ClassicString = 1,
    /// Those of the original library for a queue of ByteString.
    ClassicBytes = 2,
}

/// What sender and receiver do for the messages of one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum QueleaCmqMode {
    /// As UDP: delivered as it arrives, duplicates dropped, losses counted.
    Lossy = 0,
    /// Only what is newer than everything delivered before.
    LatestOnly = 1,
    /// Each message once, as it arrives.
    ReliableUnordered = 2,
    /// Each message once, in the order in which it was pushed.
    ReliableOrdered = 3,
    /// As ReliableOrdered until a message is older than `deadline_us`.
    ReliableUntil = 4,
}

/// What a push does when there is no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum QueleaCmqWhenFull {
    /// Waits as long as configured.
    Block = 0,
    /// Answers QUELEA_CMQ_CODE_WOULD_BLOCK.
    Refuse = 1,
    /// Drops the message and counts it.
    DropNew = 2,
    /// Drops the oldest waiting batch of the same destination and counts its messages.
    DropOldest = 3,
}

/// An endpoint's settings. Begin with `{ .size = sizeof(quelea_cmq_config) }`: what is zero has the
/// library's default.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QueleaCmqConfig {
    /// Bytes of this structure, as the caller knows it.
    pub size: usize,
    /// A quelea_cmq_wire.
    pub wire: u32,
    /// Bytes of a batch: it leaves before the message that would make it larger.
    pub qthresh: usize,
    /// The longest that a message waits in a batch, in microseconds.
    pub timeout_us: u64,
    /// QUELEA_CMQ_SECRET_BYTES secret bytes that both ends share, or NULL; copied.
    pub pre_shared_key: *const u8,
    /// Bytes of one datagram at most.
    pub segment_bytes_max: usize,
    /// Bytes of a message at most.
    pub message_bytes_max: usize,
    /// Bytes that wait to be sent or acknowledged, over all destinations.
    pub outbox_bytes_max: usize,
    /// Destinations at most.
    pub destinations_max: usize,
    /// Peers' flows that are remembered.
    pub flows_max: usize,
    /// Bytes that wait for what is missing before them, over all flows.
    pub reassembly_bytes_max: usize,
    /// Those flows that come from one address, or from one network of 64 bits of IPv6.
    pub flows_per_address_max: usize,
}

/// How messages go to one destination. Begin with `{ .size = sizeof(quelea_cmq_dest_options) }`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QueleaCmqDestOptions {
    /// Bytes of this structure, as the caller knows it.
    pub size: usize,
    /// A quelea_cmq_mode.
    pub mode: u32,
    /// A quelea_cmq_when_full.
    pub when_full: u32,
    /// For ReliableUntil: the age at which a message is given up, in microseconds.
    pub deadline_us: u64,
    /// Another age of batches than the endpoint's, in microseconds; zero is the endpoint's.
    pub timeout_us: u64,
    /// Datagrams of a repair group; zero sends no parity.
    pub repair_data: u32,
    /// Parity datagrams of a group (Reed-Solomon); zero is one by XOR.
    pub repair_parity: u32,
    /// Whether the receiver's credit does not bound what is under way; for Lossy and LatestOnly only.
    pub without_credit: bool,
}

/// How a mailbox takes messages. Begin with `{ .size = sizeof(quelea_cmq_queue_options) }`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QueleaCmqQueueOptions {
    /// Bytes of this structure, as the caller knows it.
    pub size: usize,
    /// Bytes delivered and not yet popped; the senders' credit ends before. Zero is the default.
    pub bytes_max: usize,
    /// Whether reliable messages count as arrived only when quelea_cmq_queue_acknowledge says so.
    pub acknowledged_by_application: bool,
}

/// Copies an options structure, zeros where the caller's is shorter than ours. None for NULL.
///
/// # Safety
/// `pointer` is NULL, or begins with a `size` and as many bytes can be read from it. `T` is made of
/// numbers, of which zero is one each.
unsafe fn read<T: Copy>(pointer: *const T, name: &str) -> Result<Option<T>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise: the size is the first field.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < size_of::<usize>() {
        return Err(Failure::invalid(format!("{name}->size is {size}; set it to sizeof *{name}")));
    }
    if size > size_of::<T>() {
        let known = size_of::<T>();
        return Err(Failure::invalid(format!(
            "{name}->size is {size}, this library knows {known}: it is older than the header"
        )));
    }
    let mut copy = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: `size` bytes can be read by the caller's promise, and fit by the test above.
    unsafe { ptr::copy_nonoverlapping(pointer.cast::<u8>(), copy.as_mut_ptr().cast(), size) };
    // SAFETY: by the caller's promise all-zero is a value of `T`, and so is what was copied into it.
    Ok(Some(unsafe { copy.assume_init() }))
}

/// # Safety
/// `config` is NULL or points to a structure of its `size`; its key is NULL or has 32 bytes.
pub(crate) unsafe fn config(config: *const QueleaCmqConfig) -> Result<Config, Failure> {
    // SAFETY: the caller's promise.
    let Some(given) = (unsafe { read(config, "config")? }) else { return Ok(Config::default()) };
    let mut config = match given.wire {
        0 => Config::default(),
        1 => Config::classic(),
        2 => Config { wire: Wire::ClassicBytes, ..Config::classic() },
        other => return Err(Failure::invalid(format!("wire is {other}, not one of 0 to 2"))),
    };
    let datagram = (limits::SEGMENT_BYTES_MIN, limits::DATAGRAM_BYTES_MAX);
    set("qthresh", &mut config.qthresh, given.qthresh, datagram)?;
    set("segment_bytes_max", &mut config.segment_bytes_max, given.segment_bytes_max, datagram)?;
    let message = (1, limits::MESSAGE_BYTES_MAX);
    set("message_bytes_max", &mut config.message_bytes_max, given.message_bytes_max, message)?;
    let destinations = (1, limits::DESTINATIONS_MAX);
    set("destinations_max", &mut config.destinations_max, given.destinations_max, destinations)?;
    let any = (1, usize::MAX);
    set("outbox_bytes_max", &mut config.outbox_bytes_max, given.outbox_bytes_max, any)?;
    set("flows_max", &mut config.flows_max, given.flows_max, any)?;
    let flows = given.flows_per_address_max;
    set("flows_per_address_max", &mut config.flows_per_address_max, flows, any)?;
    set("reassembly_bytes_max", &mut config.reassembly_bytes_max, given.reassembly_bytes_max, any)?;
    if given.timeout_us != 0 {
        config.timeout = Duration::from_micros(given.timeout_us);
    }
    if !given.pre_shared_key.is_null() {
        let key = given.pre_shared_key.cast::<[u8; QUELEA_CMQ_SECRET_BYTES]>();
        // SAFETY: the caller's promise; an array of bytes has no alignment.
        config.pre_shared_key = Some(PreSharedKey(unsafe { key.read() }));
    }
    Ok(config)
}

/// Sets an option to a value within its bounds. Zero leaves the default.
fn set(
    name: &str,
    option: &mut usize,
    value: usize,
    (least, most): (usize, usize),
) -> Result<(), Failure> {
    if value == 0 {
        return Ok(());
    }
    if !(least..=most).contains(&value) {
        return Err(Failure::invalid(format!("{name} is {value}, not from {least} to {most}")));
    }
    *option = value;
    Ok(())
}

/// # Safety
/// `options` is NULL or points to a structure of its `size`.
pub(crate) unsafe fn destination(
    options: *const QueleaCmqDestOptions,
) -> Result<DestinationOptions, Failure> {
    // SAFETY: the caller's promise.
    let Some(given) = (unsafe { read(options, "options")? }) else {
        return Ok(DestinationOptions::default());
    };
    let mode = match given.mode {
        0 => Mode::Lossy,
        1 => Mode::LatestOnly,
        2 => Mode::ReliableUnordered,
        3 => Mode::ReliableOrdered,
        4 if given.deadline_us == 0 => {
            return Err(Failure::invalid("QUELEA_CMQ_MODE_RELIABLE_UNTIL needs deadline_us"));
        }
        4 => Mode::ReliableUntil(Duration::from_micros(given.deadline_us)),
        other => return Err(Failure::invalid(format!("mode is {other}, not one of 0 to 4"))),
    };
    let when_full = match given.when_full {
        0 => WhenFull::Block,
        1 => WhenFull::Refuse,
        2 => WhenFull::DropNew,
        3 => WhenFull::DropOldest,
        other => return Err(Failure::invalid(format!("when_full is {other}, not one of 0 to 3"))),
    };
    let repair = match (given.repair_data, given.repair_parity) {
        (0, 0) => Repair::None,
        (data, 0) => Repair::Xor { data: group("repair_data", data, limits::REPAIR_DATA_MAX)? },
        (data, parity) => Repair::ReedSolomon {
            data: group("repair_data", data, limits::REPAIR_DATA_MAX)?,
            parity: group("repair_parity", parity, limits::REPAIR_PARITY_MAX)?,
        },
    };
    let timeout = (given.timeout_us != 0).then(|| Duration::from_micros(given.timeout_us));
    Ok(DestinationOptions {
        mode,
        when_full,
        repair,
        timeout,
        credit: !given.without_credit,
        ..DestinationOptions::default()
    })
}

fn group(name: &str, value: u32, most: u8) -> Result<u8, Failure> {
    u8::try_from(value)
        .ok()
        .filter(|value| (1..=most).contains(value))
        .ok_or_else(|| Failure::invalid(format!("{name} is {value}, not from 1 to {most}")))
}

/// # Safety
/// `options` is NULL or points to a structure of its `size`.
pub(crate) unsafe fn mailbox(
    options: *const QueleaCmqQueueOptions,
) -> Result<MailboxOptions, Failure> {
    let mut made = MailboxOptions::default();
    // SAFETY: the caller's promise.
    if let Some(given) = unsafe { read(options, "options")? } {
        set("bytes_max", &mut made.bytes_max, given.bytes_max, (1, usize::MAX))?;
        made.acknowledged_by_application = given.acknowledged_by_application;
    }
    Ok(made)
}
