//! Every limit of the wire, named in one place.

use std::time::Duration;

/// Bytes of a frame's header.
pub const HEADER_MAX: usize = 1 << 20;
/// Bytes of a payload that travels in its frame; a larger one takes a stream of its own.
pub const INLINE_PAYLOAD_MAX: usize = 64 << 10;
/// Bytes of one piece of a payload on its own stream.
pub const PIECE_MAX: usize = 64 << 10;
/// Bytes of a payload, unless the server says less.
pub const PAYLOAD_MAX: usize = 1 << 20;
/// Bytes of a payload that no setting can exceed.
pub const PAYLOAD_CAP: usize = 16 << 20;
/// Tasks in one batch.
pub const BATCH_TASKS_MAX: usize = 1_000;
/// Bytes of the payloads of one batch.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// Payloads of a peer that are under way at once, each on its own stream, and frames that wait for
/// one. Twice what [`PAYLOADS_AHEAD_MAX`] and the shell's buffers and windows let a sender reach.
pub const PAYLOADS_UNDER_WAY_MAX: usize = 128;
/// Payloads whose frames are sent and whose pieces were not begun or ended: a sender that has so
/// many sends pieces before it sends another such frame.
pub const PAYLOADS_AHEAD_MAX: usize = 8;
/// Bytes of payloads that are under way or wait for their frame.
pub const PAYLOAD_BYTES_UNDER_WAY_MAX: usize = 32 << 20;
/// Headers of one task.
pub const TASK_HEADERS_MAX: usize = 32;
/// Bytes of all headers of one task, names and values.
pub const TASK_HEADER_BYTES_MAX: usize = 8 << 10;
/// Bytes of a media type or encoding.
pub const CONTENT_TYPE_MAX: usize = 256;
/// Bytes of an owner key or idempotency key.
pub const KEY_MAX: usize = 256;
/// Bytes of a message for people.
pub const MESSAGE_MAX: usize = 4 << 10;
/// Bytes of a failure's details.
pub const DETAILS_MAX: usize = 16 << 10;
/// Bytes of the progress of a delivery.
pub const PROGRESS_MAX: usize = 16 << 10;
/// Between two beats that progress asks for.
pub const PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a signal.
pub const SIGNAL_MAX: usize = 16 << 10;
/// Nodes that a task may prefer.
pub const PREFER_MAX: usize = 8;
/// Bytes of a trace's parent, state and baggage together.
pub const TRACE_MAX: usize = 8 << 10;
/// Watches of one session.
pub const WATCHES_MAX: usize = 64;
/// Bytes of an application's failure code.
pub const FAILURE_CODE_MAX: usize = 256;
/// Codes in a retry policy after which there is no other attempt.
pub const NON_RETRYABLE_MAX: usize = 32;
/// Bytes of names and values of one label, and of an identity or build.
pub const LABEL_MAX: usize = 256;
/// Leases in one frame.
pub const LEASES_MAX: usize = 65_536;
/// Fields of one header, those of the messages in it included where there may be many.
pub const FIELDS_MAX: usize = LEASES_MAX + 64;
/// Requests of one session that are not answered yet, outcomes waited for included.
pub const REQUESTS_MAX: usize = 65_536;
/// Replies of one session that wait to be sent; whoever asks for more reads first.
pub const REPLIES_AHEAD_MAX: usize = 64;
/// Answers of one session that wait to be sent. A peer that lets so many wait does not read, and
/// loses its session.
pub const ANSWERS_AHEAD_MAX: usize = 4 * REQUESTS_MAX;
/// Items in one page of a reply.
pub const PAGE_MAX: usize = 1_000;
/// The longest retry delay, deadline or other time that a task may ask for.
pub const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// For a peer to say hello, and for the answer to come.
pub const HELLO_DEADLINE: Duration = Duration::from_secs(5);
/// Silence after which a peer is asked whether it lives.
pub const PING_AFTER: Duration = Duration::from_secs(3);
/// Silence after which a peer is taken for dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(6);
/// For the answer to a goodbye.
pub const GOODBYE_DEADLINE: Duration = Duration::from_secs(2);
/// Cancels that one answer to a beat repeats.
pub const REPEATED_CANCELS_MAX: usize = 256;
/// Cancels that a worker keeps for offers that may still come.
pub const EARLY_CANCELS_MAX: usize = 256;
