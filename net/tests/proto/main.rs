//! The codec: frames to bytes and back, however the bytes are cut.

mod flood;
mod sample;
mod tally;

use bytes::{Bytes, BytesMut};
use prost::Message;
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{Decoder, Frame, WireCode, limits};

use crate::tally::allocated;

fn encode(frame: &Frame) -> Bytes {
    let mut out = BytesMut::new();
    frame.encode_head(&mut out);
    out.extend_from_slice(frame.payload());
    out.freeze()
}

fn decode(chunks: impl IntoIterator<Item = Bytes>) -> Result<Vec<Frame>, WireCode> {
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

#[test]
fn every_frame_round_trips() {
    let samples = sample::frames();
    let mut numbers: Vec<u8> = samples.iter().map(Frame::number).collect();
    for frame in samples {
        assert_eq!(decode([encode(&frame)]), Ok(vec![frame.clone()]), "{}", frame.name());
        assert_eq!(encode(&frame)[0], frame.number());
    }
    numbers.sort_unstable();
    numbers.dedup();
    let table = [
        0x01, 0x02, 0x03, 0x04, 0x05, 0x07, 0x08, 0x10, 0x11, 0x12, 0x13, 0x14, 0x18, 0x19, 0x1a,
        0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35,
        0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x40,
    ];
    assert_eq!(numbers, table);
}

#[test]
fn decode_any_chunking() {
    let samples = sample::frames();
    let mut stream = BytesMut::new();
    for frame in &samples {
        stream.extend_from_slice(&encode(frame));
    }
    let stream = stream.freeze();
    // Split in two at every byte.
    for cut in 0..=stream.len() {
        let decoded = decode([stream.slice(..cut), stream.slice(cut..)]);
        assert_eq!(decoded.as_deref(), Ok(samples.as_slice()), "cut at {cut}");
    }
    // In equal chunks of every size up to one hundred, and of random sizes.
    for size in 1..=100 {
        let chunks = (0..stream.len()).step_by(size);
        let chunks = chunks.map(|at| stream.slice(at..stream.len().min(at + size)));
        assert_eq!(decode(chunks).as_deref(), Ok(samples.as_slice()), "chunks of {size}");
    }
    let mut dice = 88_172_645_463_325_252_u64;
    for _ in 0..300 {
        let (mut rest, mut chunks) = (stream.clone(), Vec::new());
        while !rest.is_empty() {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            chunks.push(rest.split_to(rest.len().min(dice as usize % 300)));
        }
        assert_eq!(decode(chunks).as_deref(), Ok(samples.as_slice()));
    }
}

#[test]
fn a_payload_in_one_chunk_is_a_slice_of_it() {
    let payload: Bytes = vec![7; 10_000].into();
    let frame = Frame::Result(m::TaskResult::default(), payload);
    let bytes = encode(&frame);
    let frames = decode([bytes.clone()]).expect("it is a frame");
    let within = bytes.as_ptr() as usize..bytes.as_ptr() as usize + bytes.len();
    assert!(within.contains(&(frames[0].payload().as_ptr() as usize)));
}

#[test]
fn unknown_fields_skipped() {
    // A later version's Ping has fields 7 (varint), 8 (bytes) and 9 (fixed64).
    #[derive(Clone, PartialEq, Message)]
    struct LaterPing {
        #[prost(uint64, tag = "1")]
        nonce: u64,
        #[prost(uint64, tag = "7")]
        seven: u64,
        #[prost(bytes = "bytes", tag = "8")]
        eight: Bytes,
        #[prost(fixed64, tag = "9")]
        nine: u64,
    }
    let later = LaterPing { nonce: 5, seven: 7, eight: vec![1; 300].into(), nine: 9 };
    let header = later.encode_to_vec();
    let mut bytes = BytesMut::from(&[0x04][..]);
    bytes.extend_from_slice(&[(header.len() & 0x7f) as u8 | 0x80, (header.len() >> 7) as u8, 0]);
    bytes.extend_from_slice(&header);
    let frames = decode([bytes.freeze()]);
    assert_eq!(frames, Ok(vec![Frame::Ping(m::Ping { nonce: 5, deadline: 0 })]));
}

#[test]
fn unknown_types_are_skipped_from_0x80_on_and_violations_below() {
    let pong = encode(&Frame::Pong(m::Ping { nonce: 1, deadline: 0 }));
    for number in 0x80..=0xff_u8 {
        let mut bytes = BytesMut::from(&[number, 3, 2, 1, 2, 3, 9, 9][..]);
        bytes.extend_from_slice(&pong);
        assert_eq!(decode([bytes.freeze()]).map(|frames| frames.len()), Ok(1));
    }
    let known: Vec<u8> = sample::frames().iter().map(Frame::number).collect();
    for number in (0..0x80_u8).filter(|number| !known.contains(number)) {
        let bytes = Bytes::from(vec![number, 0, 0]);
        assert_eq!(decode([bytes]), Err(WireCode::ProtocolViolation), "{number:#04x}");
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn prefix(number: u8, header: usize, payload: usize) -> Bytes {
    let mut bytes = vec![number];
    bytes.extend(varint(header as u64));
    bytes.extend(varint(payload as u64));
    bytes.into()
}

#[test]
fn every_length_at_and_over_its_limit() {
    // A prefix alone: at the limit the decoder waits for more, over it it refuses at once.
    let waits = |number, header, payload| decode([prefix(number, header, payload)]) == Ok(vec![]);
    for frame in sample::frames() {
        let number = frame.number();
        let most = match frame {
            Frame::SubmitBatch(..) => limits::BATCH_BYTES_MAX,
            Frame::Signal(..) => limits::SIGNAL_MAX,
            Frame::Payload { .. } => limits::PIECE_MAX,
            Frame::Offer(..) | Frame::Result(..) | Frame::Submit(..) | Frame::Outcome(..) => {
                limits::INLINE_PAYLOAD_MAX
            }
            _ => 0,
        };
        assert!(waits(number, limits::HEADER_MAX, most), "{}", frame.name());
        assert!(!waits(number, limits::HEADER_MAX + 1, 0), "{}", frame.name());
        assert!(!waits(number, 1, most + 1), "{}", frame.name());
    }
    let mut endless = vec![0x04];
    endless.extend([0xff; 5]);
    assert_eq!(decode([endless.into()]), Err(WireCode::ProtocolViolation));
}

// bug: B57
#[test]
fn declared_length_not_allocated() {
    for (number, header, payload) in
        [(0x10, limits::HEADER_MAX, 0), (0x32, 100, limits::BATCH_BYTES_MAX)]
    {
        let before = allocated();
        let mut decoders = Vec::with_capacity(100);
        for _ in 0..100 {
            let mut decoder = Decoder::default();
            decoder.push(prefix(number, header, payload));
            assert_eq!(decoder.next(), Ok(None));
            decoder.push(Bytes::from_static(&[0; 1_000]));
            assert_eq!(decoder.next(), Ok(None));
            decoders.push(decoder);
        }
        // A hundred peers declare megabytes and send a thousand bytes each.
        let made = allocated() - before;
        assert!(made < 100 * 16_000, "{made} bytes for {payload} declared");
    }
}

#[test]
fn headers_that_are_no_protobuf_are_malformed() {
    for frame in sample::frames() {
        // A field of wire type 7 does not exist.
        let bytes = [frame.number(), 2, 0, 0x0f, 0xff];
        let decoded = decode([Bytes::copy_from_slice(&bytes)]);
        assert_eq!(decoded, Err(WireCode::Malformed), "{}", frame.name());
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut dice = 1_234_567_u64;
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..40 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            bytes.push((dice >> 24) as u8);
        }
        // Known types and short lengths make most of them go deep.
        bytes[0] = sample::frames()[dice as usize % 30].number();
        bytes[1] %= 20;
        bytes[2] %= 20;
        let whole = decode([Bytes::from(bytes.clone())]);
        let bytewise = decode(bytes.into_iter().map(|byte| Bytes::from(vec![byte])));
        assert_eq!(whole.is_ok(), bytewise.is_ok());
    }
}
