//! Every limit, at it and over it.

use bytes::Bytes;
use slipswitch_net::client::Event;
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{WireCode, limits};

use crate::bed::{Bed, events, spec, submit};

/// The code with which a submission was refused, none if it was taken.
fn refused(bed: &mut Bed, task: Box<m::Submit>, payload: Bytes) -> Option<u32> {
    let mut pair = bed.pair();
    pair.client.submit(task, payload);
    pair.run().expect("in order");
    let ack = events(&mut pair).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => Some(ack),
        _ => None,
    });
    ack.expect("an answer").err.map(|err| err.code)
}

#[test]
fn every_limit_at_and_over() {
    type Set = Box<dyn Fn(&mut m::TaskSpec, usize)>;
    let text = |len: usize| "x".repeat(len);
    let cases: Vec<(&str, usize, WireCode, Set)> = vec![
        (
            "name",
            slipswitch_core::NAME_BYTES_MAX,
            WireCode::InvalidName,
            Box::new(move |task, len| task.r#type = text(len).into()),
        ),
        (
            "namespace",
            slipswitch_core::NAME_BYTES_MAX,
            WireCode::InvalidName,
            Box::new(move |task, len| task.namespace = text(len).into()),
        ),
        (
            "headers",
            limits::TASK_HEADERS_MAX,
            WireCode::LimitExceeded,
            Box::new(|task, len| task.headers = vec![m::Pair::default(); len]),
        ),
        (
            "header bytes",
            limits::TASK_HEADER_BYTES_MAX,
            WireCode::LimitExceeded,
            Box::new(move |task, len| {
                task.headers = vec![m::Pair { name: text(len / 2), value: text(len - len / 2) }];
            }),
        ),
        (
            "owner key",
            limits::KEY_MAX,
            WireCode::LimitExceeded,
            Box::new(move |task, len| task.owner_key = text(len).into()),
        ),
        (
            "content type",
            limits::CONTENT_TYPE_MAX,
            WireCode::LimitExceeded,
            Box::new(move |task, len| task.content_type = text(len).into()),
        ),
        (
            "priority",
            9,
            WireCode::Malformed,
            Box::new(|task, value| task.priority = Some(value as u32)),
        ),
        (
            "deadline",
            usize::try_from(limits::TIME_MAX.as_millis()).expect("it fits"),
            WireCode::LimitExceeded,
            Box::new(|task, value| task.deadline = Some(value as u64)),
        ),
    ];
    let mut bed = Bed::new();
    for (what, most, code, set) in cases {
        for over in [0, 1] {
            let mut task = submit(1, "echo", false);
            set(&mut task.task, most + over);
            let answer = refused(&mut bed, task, Bytes::new());
            let expected = (over == 1).then(|| code.number());
            assert_eq!(answer, expected, "{what} at {most} + {over}");
        }
    }
    let most = Bytes::from(vec![0; limits::PAYLOAD_MAX]);
    assert_eq!(refused(&mut bed, submit(1, "echo", false), most), None);
}

#[test]
fn a_payload_over_the_limit_is_refused_and_the_session_lives() {
    let mut bed = Bed::new();
    let over = Bytes::from(vec![0; limits::PAYLOAD_MAX + 1]);
    let code = refused(&mut bed, submit(1, "echo", false), over.clone());
    assert_eq!(code, Some(WireCode::LimitExceeded.number()));
    let mut pair = bed.pair();
    for req in 1..=3 {
        let payload = if req == 2 { over.clone() } else { Bytes::new() };
        pair.client.submit(submit(req, "echo", false), payload);
    }
    pair.run().expect("in order");
    let mut answers: Vec<_> = events(&mut pair)
        .into_iter()
        .filter_map(|event| match event {
            Event::SubmitAck(ack) => Some((ack.req, ack.err.is_none())),
            _ => None,
        })
        .collect();
    answers.sort_unstable();
    assert_eq!(answers, [(1, true), (2, false), (3, true)]);
}

#[test]
fn a_payload_over_the_cap_ends_the_session() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    let over = Bytes::from(vec![0; limits::PAYLOAD_CAP + 1]);
    pair.client.submit(submit(1, "echo", false), over);
    let ended = pair.run().map_err(|error| error.code());
    assert_eq!(ended, Err(WireCode::ProtocolViolation));
}

#[test]
fn a_batch_over_its_limits_is_refused_whole() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    let item = || m::BatchTask { task: None, payload_len: 0 };
    for (count, taken) in [(limits::BATCH_TASKS_MAX, true), (limits::BATCH_TASKS_MAX + 1, false)] {
        let tasks = (0..count).map(|_| item()).collect();
        pair.client.submit_batch(
            m::SubmitBatch { req: 1, tasks, wait: false, common: Some(Box::new(spec("echo"))) },
            Bytes::new(),
        );
        pair.run().expect("in order");
        let ack = events(&mut pair).into_iter().find_map(|event| match event {
            Event::SubmitBatchAck(ack) => Some(ack),
            _ => None,
        });
        let ack = ack.expect("an answer");
        assert_eq!((ack.err.is_none(), ack.items.len() == count), (taken, taken));
    }
}
