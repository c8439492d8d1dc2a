//! F1: any bytes, cut anywhere, give the same frames or the same error, and no panic; and what was
//! read is written as it was.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use slipswitch_net::proto::{Decoder, Frame, WireCode};

/// Frames as they are written: a number in them that is none does not equal itself.
fn written(frames: &[Frame]) -> Bytes {
    let mut out = BytesMut::new();
    for frame in frames {
        frame.encode_head(&mut out);
        out.extend_from_slice(frame.payload());
    }
    out.freeze()
}

fn decode(chunks: impl Iterator<Item = Bytes>) -> Result<Bytes, WireCode> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(frame) = decoder.next().map_err(|error| error.code())? {
            frames.push(frame);
        }
    }
    Ok(written(&frames))
}

fuzz_target!(|data: &[u8]| {
    // The first byte says how to cut the rest.
    let Some((&cut, stream)) = data.split_first() else { return };
    let whole = decode(std::iter::once(Bytes::copy_from_slice(stream)));
    let size = usize::from(cut).max(1);
    let pieces = decode(stream.chunks(size).map(Bytes::copy_from_slice));
    assert_eq!(whole, pieces);
    if let Ok(whole) = whole {
        assert_eq!(decode(std::iter::once(whole.clone())), Ok(whole));
    }
});
