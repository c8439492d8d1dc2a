//! What a small header may make its reader allocate.

use bytes::{BufMut, Bytes, BytesMut};
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{Frame, WireCode, limits};

use crate::tally::allocated;
use crate::{decode, encode, prefix};

/// A frame whose header is that, again and again up to the limit of a header.
fn repeated(number: u8, unit: &[u8]) -> Bytes {
    let times = limits::HEADER_MAX / unit.len();
    let mut bytes = BytesMut::from(&prefix(number, times * unit.len(), 0)[..]);
    (0..times).for_each(|_| bytes.put_slice(unit));
    bytes.freeze()
}

/// A frame with one field that holds a unit, again and again.
fn nested(number: u8, field: u8, unit: &[u8]) -> Bytes {
    let times = (limits::HEADER_MAX - 8) / unit.len();
    let len = times * unit.len();
    let mut header = BytesMut::new();
    header.put_u8(field << 3 | 2);
    header.put_slice(&crate::varint(len as u64));
    (0..times).for_each(|_| header.put_slice(unit));
    let mut bytes = BytesMut::from(&prefix(number, header.len(), 0)[..]);
    bytes.extend_from_slice(&header);
    bytes.freeze()
}

#[test]
fn a_header_of_tiny_fields_is_refused_before_they_are_made() {
    // Submit: a task of half a million empty headers, or codes that are not retried.
    let pair: &[u8] = &[6 << 3 | 2, 0];
    let frames = [
        ("tasks", repeated(0x32, &[2 << 3 | 2, 0])),
        ("tasks that say something", repeated(0x32, &[2 << 3 | 2, 2, 1 << 3 | 2, 0])),
        ("headers", nested(0x30, 2, pair)),
        ("common headers", nested(0x32, 4, pair)),
        ("pools", repeated(0x10, &[2 << 3 | 2, 0])),
        ("types", nested(0x10, 2, &[3 << 3 | 2, 0])),
        ("leases", repeated(0x19, &[1 << 3 | 2, 0])),
    ];
    for (what, frame) in frames {
        let before = allocated();
        let decoded = decode([frame]);
        let made = allocated() - before;
        assert!(made < 4 << 20, "{what}: {made} bytes");
        assert_eq!(decoded, Err(WireCode::ProtocolViolation), "{what}");
    }
}

#[test]
fn the_most_that_a_header_can_mean_is_read() {
    let lease = m::Lease { id: 1 << 21, epoch: 1 << 21 };
    let accept = Frame::Accept(m::Accept { leases: vec![lease; limits::LEASES_MAX] });
    let pair = m::Pair { name: "name".to_owned(), value: "value".to_owned() };
    let spec =
        m::TaskSpec { headers: vec![pair; limits::TASK_HEADERS_MAX], ..m::TaskSpec::default() };
    let task = m::BatchTask { task: Some(Box::new(spec)), payload_len: 0 };
    let batch =
        m::SubmitBatch { tasks: vec![task; limits::BATCH_TASKS_MAX], ..m::SubmitBatch::default() };
    for frame in [accept, Frame::SubmitBatch(batch, Bytes::new())] {
        let bytes = encode(&frame);
        assert!(bytes.len() > limits::HEADER_MAX / 3);
        assert_eq!(decode([bytes]), Ok(vec![frame]));
    }
}
