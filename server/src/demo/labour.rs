//! What a task of the demo is, and what its worker makes of it.
//!
//! A payload is its number and bytes that follow from it, so that producer and worker need to
//! share nothing. The result is the payload backwards, behind a head that says which delivery made
//! it.

use bytes::{BufMut, Bytes, BytesMut};

/// The activity type.
pub(super) const ACTIVITY_TYPE: &str = "demo.reverse";
/// The shortest payload: a number.
pub(super) const PAYLOAD_BYTES_MIN: usize = 8;
/// The bytes of a result before the payload.
pub(super) const HEAD_BYTES: usize = 12;

/// What a result says about the delivery that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The epoch of the lease.
    pub(super) epoch: u64,
    /// How often a worker had accepted the task before.
    pub(super) deliveries: u32,
}

/// Makes the payload of a task.
pub(super) fn payload(number: u64, bytes: usize) -> Bytes {
    let mut payload = BytesMut::with_capacity(bytes + 8);
    payload.put_u64_le(number);
    let mut state = number;
    while payload.len() < bytes {
        payload.put_u64_le(scatter(&mut state));
    }
    payload.truncate(bytes);
    payload.freeze()
}

/// A step of splitmix64: every bit of the number reaches every byte.
fn scatter(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Makes the result of a task.
pub(super) fn result(head: Head, payload: &[u8]) -> Bytes {
    let mut result = BytesMut::with_capacity(HEAD_BYTES + payload.len());
    result.put_u64_le(head.epoch);
    result.put_u32_le(head.deliveries);
    result.extend(payload.iter().rev());
    result.freeze()
}

/// Reads the result of a task; `None` if it is not what the payload leads to.
pub(super) fn verify(payload: &[u8], result: &[u8]) -> Option<Head> {
    let (epoch, rest) = result.split_first_chunk()?;
    let (deliveries, reversed) = rest.split_first_chunk()?;
    reversed.iter().rev().eq(payload).then(|| Head {
        epoch: u64::from_le_bytes(*epoch),
        deliveries: u32::from_le_bytes(*deliveries),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_known_by_its_payload_alone() {
        for bytes in [8, 9, 64, 1000] {
            let task = payload(7, bytes);
            assert_eq!((task.len(), &task[..8]), (bytes, &7u64.to_le_bytes()[..]));
            let head = Head { epoch: 1 << 40, deliveries: 3 };
            let made = result(head, &task);
            assert_eq!(made.len(), HEAD_BYTES + bytes);
            assert_eq!(verify(&task, &made), Some(head));
            assert_eq!(verify(&payload(8, bytes), &made), None);
            assert_eq!(verify(&task, &made[..made.len() - 1]), None);
            let mut wrong = made.to_vec();
            wrong[HEAD_BYTES] ^= 1;
            assert_eq!(verify(&task, &wrong), None);
        }
    }
}
