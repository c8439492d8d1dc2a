//! F1: any bytes, cut anywhere, give the same frames or the same error, and no panic.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use slipswitch_net::proto::{Decoder, Frame, WireCode};

fn decode(chunks: impl Iterator<Item = Bytes>) -> Result<Vec<Frame>, WireCode> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(frame) = decoder.next().map_err(|error| error.code())? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fuzz_target!(|data: &[u8]| {
    // The first byte says how to cut the rest.
    let Some((&cut, stream)) = data.split_first() else { return };
    let whole = decode(std::iter::once(Bytes::copy_from_slice(stream)));
    let size = usize::from(cut).max(1);
    let pieces = decode(stream.chunks(size).map(Bytes::copy_from_slice));
    assert_eq!(whole, pieces);
});
