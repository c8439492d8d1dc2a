//! How many fields a header may have.
//!
//! An empty field takes two bytes on the wire and up to some hundred once it is read. A header that
//! is large enough for that to matter is walked first, and refused before anything of it is made.

use bytes::Buf;

use super::frame::ProtocolError;
use super::limits;

/// Headers up to this size are read without a walk: a few hundred kilobytes at the very worst.
const SMALL: usize = 4 << 10;

/// The fields of a message that are bounded more closely than all fields of a header together.
struct Shape {
    /// Fields of its own.
    max: usize,
    /// Fields that are messages to walk too.
    inner: &'static [(u64, &'static Self)],
}

/// Twice what is allowed and more: what is a little over gets an answer of its own.
static RETRY: Shape = Shape { max: 4 * limits::NON_RETRYABLE_MAX, inner: &[] };
static TASK: Shape = Shape { max: 8 * limits::TASK_HEADERS_MAX, inner: &[(19, &RETRY)] };
static SUBMIT: Shape = Shape { max: 64, inner: &[(2, &TASK)] };
static BATCH_TASK: Shape = Shape { max: 16, inner: &[(1, &TASK)] };
static BATCH: Shape =
    Shape { max: 2 * limits::BATCH_TASKS_MAX, inner: &[(2, &BATCH_TASK), (4, &TASK)] };
static POOL: Shape = Shape { max: limits::FIELDS_MAX, inner: &[] };
static REGISTER: Shape = Shape { max: limits::FIELDS_MAX, inner: &[(2, &POOL)] };
static OTHER: Shape = Shape { max: limits::FIELDS_MAX, inner: &[] };

/// Refuses a header with more fields than a frame of its type can have.
pub(crate) fn check(number: u8, header: &[u8]) -> Result<(), ProtocolError> {
    if header.len() <= SMALL {
        return Ok(());
    }
    let shape = match number {
        0x10 | 0x12 => &REGISTER,
        0x30 => &SUBMIT,
        0x32 => &BATCH,
        _ => &OTHER,
    };
    let mut left = limits::FIELDS_MAX;
    if walk(header, shape, &mut left).is_some() {
        return Ok(());
    }
    let what = format!("frame type {number:#04x}: more fields than it can have");
    Err(ProtocolError::violation(what))
}

/// None if there are too many. What cannot be read ends the walk: reading it will say so.
fn walk(mut bytes: &[u8], shape: &Shape, left: &mut usize) -> Option<()> {
    let mut own = shape.max;
    while bytes.has_remaining() {
        own = own.checked_sub(1)?;
        *left = left.checked_sub(1)?;
        let Ok(key) = prost::encoding::decode_varint(&mut bytes) else { return Some(()) };
        let skipped = match key & 7 {
            0 => prost::encoding::decode_varint(&mut bytes).map_or(usize::MAX, |_| 0),
            1 => 8,
            2 => {
                let Ok(len) = prost::encoding::decode_varint(&mut bytes) else { return Some(()) };
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let field = key >> 3;
                if let Some((_, shape)) = shape.inner.iter().find(|(inner, _)| *inner == field) {
                    walk(bytes.get(..len).unwrap_or(bytes), shape, left)?;
                }
                len
            }
            // A group: its fields are counted as this message's own.
            3 | 4 => 0,
            5 => 4,
            _ => usize::MAX,
        };
        let Some(rest) = bytes.get(skipped..) else { return Some(()) };
        bytes = rest;
    }
    Some(())
}
