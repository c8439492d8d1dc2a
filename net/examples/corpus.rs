//! Writes the corpora that fuzzing starts from: one file for each type of frame, and sessions that
//! make sense. `cargo run -p slipswitch-net --no-default-features --example corpus`

use std::fs;
use std::io;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use slipswitch_net::proto::Frame;
use slipswitch_net::proto::messages as m;

#[path = "../tests/proto/sample.rs"]
mod sample;

fn encode(frames: &[Frame]) -> Bytes {
    let mut out = BytesMut::new();
    for frame in frames {
        frame.encode_head(&mut out);
        out.extend_from_slice(frame.payload());
    }
    out.freeze()
}

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    fs::create_dir_all(corpus.join("decoder"))?;
    fs::create_dir_all(corpus.join("session"))?;
    let hello =
        Frame::Hello(Box::new(m::Hello { proto_min: 1, proto_max: 1, ..m::Hello::default() }));
    for frame in sample::frames() {
        let name = format!("{:02x}-{}", frame.number(), frame.name().to_lowercase());
        // The first byte of the decoder's input says how to cut the rest.
        let mut bytes = vec![3];
        bytes.extend_from_slice(&encode(std::slice::from_ref(&frame)));
        fs::write(corpus.join("decoder").join(&name), bytes)?;
        fs::write(corpus.join("session").join(&name), encode(&[hello.clone(), frame]))?;
    }
    let mut whole = vec![hello];
    whole.extend(sample::frames().into_iter().filter(|frame| frame.number() >= 0x10));
    fs::write(corpus.join("session/whole"), encode(&whole))
}
