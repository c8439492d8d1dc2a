//! Numbers from numbers: the same everywhere, and no secret.

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014): each bit of the input moves about half of
/// the output's.
#[inline]
pub(crate) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// FNV-1a of 64 bits, mixed.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

/// Two different numbers below `count`, or twice 0 if there is but one.
pub(crate) const fn two_below(count: u32, random: u64) -> (u32, u32) {
    if count < 2 {
        return (0, 0);
    }
    // A share of 2^32 by multiplication: uneven by less than count ÷ 2^32.
    let first = (((random & 0xffff_ffff) * count as u64) >> 32) as u32;
    let second = (((random >> 32) * (count - 1) as u64) >> 32) as u32;
    (first, if second >= first { second + 1 } else { second })
}
