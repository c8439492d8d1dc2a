//! One frame of each type, with most fields set.

use bytes::Bytes;
use slipswitch_net::proto::Frame;
use slipswitch_net::proto::messages as m;

pub(crate) fn frames() -> Vec<Frame> {
    let lease = m::Lease { id: 3, epoch: 1 << 40 };
    let id = Bytes::from_static(&[7; 16]);
    let err = || m::Err {
        code: 3,
        retryable: true,
        retry_after: 9,
        message: "über dem Limit".to_owned(),
        details: Bytes::from_static(&[0, 255]),
    };
    let ping = m::Ping { nonce: u64::MAX, deadline: 3_000 };
    let goodbye = m::Goodbye { reason: 8, message: "bye".to_owned() };
    let pair = || m::Pair { name: "a".to_owned(), value: "b".to_owned() };
    let register = m::Register {
        req: 1,
        pools: vec![m::PoolEntry {
            namespaces: vec!["main".to_owned()],
            task_queue: "q".to_owned(),
            types: vec![m::TypeEntry { name: "t".to_owned(), ..m::TypeEntry::default() }],
        }],
        node: Some("box-7".to_owned()),
        labels: vec![pair()],
        instance_id: id.clone(),
        capacity: 65_535,
        ..m::Register::default()
    };
    let task = m::TaskSpec {
        namespace: Bytes::from_static(b"main"),
        r#type: Bytes::from_static(b"t"),
        headers: vec![pair()],
        priority: Some(0),
        schedule_to_start: Some(0),
        retry: Some(Box::new(m::Retry { kind: 3, factor: 2.5, ..m::Retry::default() })),
        ..m::TaskSpec::default()
    };
    let cancel = m::Cancel { lease, reason: 1, grace: 10, message: "enough".to_owned() };
    let payload = Bytes::from_static(b"payload");
    vec![
        Frame::Hello(Box::new(m::Hello { proto_min: 1, proto_max: 1, ..m::Hello::default() })),
        Frame::HelloAck(Box::new(m::HelloAck {
            server_id: id.clone(),
            limits: Some(m::Limits { payload: 1, batch_tasks: 2, batch_bytes: 3 }),
            alternates: vec!["a:1".to_owned()],
            ..m::HelloAck::default()
        })),
        Frame::Error(m::Error { req: 1, err: Some(err()) }),
        Frame::Ping(ping),
        Frame::Pong(ping),
        Frame::Goodbye(goodbye.clone()),
        Frame::GoodbyeAck(goodbye),
        Frame::Register(Box::new(register.clone())),
        Frame::RegisterAck(m::RegisterAck {
            req: 1,
            worker_id: 2,
            generation: 3,
            pools: vec![m::RegisteredPool { pool_ref: 1, ..m::RegisteredPool::default() }],
            err: None,
        }),
        Frame::Update(Box::new(register)),
        Frame::Credit(m::Credit {
            scope: Some(m::CreditScope { all: true, pool_ref: None, type_ref: None }),
            limit: 64,
            seq: 2,
        }),
        Frame::Demand(m::Demand { pool_ref: 1, waiting: 2 }),
        Frame::Offer(
            Box::new(m::Offer { task_id: id.clone(), lease, attempt: 1, ..m::Offer::default() }),
            payload.clone(),
        ),
        Frame::Accept(m::Accept { leases: vec![lease; 3] }),
        Frame::Reject(m::Reject { lease, code: 2 }),
        Frame::Heartbeat(m::Heartbeat { seq: 1, all: true, ..m::Heartbeat::default() }),
        Frame::HeartbeatAck(m::HeartbeatAck {
            seq: 1,
            cancel: vec![cancel.clone()],
            lost: vec![lease],
        }),
        Frame::Result(
            m::TaskResult {
                task_id: id.clone(),
                lease,
                fail: Some(Box::new(m::Fail { class: 2, ..m::Fail::default() })),
                ..m::TaskResult::default()
            },
            payload.clone(),
        ),
        Frame::ResultAck(m::ResultAck { verdicts: vec![m::Verdict { lease, verdict: 1 }] }),
        Frame::Cancel(cancel),
        Frame::Signal(m::Signal { lease, seq: 4, kind: "faster".to_owned() }, payload.clone()),
        Frame::SignalAck(m::SignalAck { lease, seq: 4, verdict: 2 }),
        Frame::Drain(m::Drain { scope: "server".to_owned(), deadline: 25_000, alternates: vec![] }),
        Frame::DrainAck(m::DrainAck { running: 3 }),
        Frame::Submit(
            Box::new(m::Submit { req: 1, task: task.clone(), stream_ref: Some(1), wait: true }),
            payload.clone(),
        ),
        Frame::SubmitAck(m::SubmitAck { req: 1, task_id: id.clone(), ..m::SubmitAck::default() }),
        Frame::SubmitBatch(
            m::SubmitBatch {
                req: 1,
                tasks: vec![m::BatchTask { task: Some(Box::new(task.clone())), payload_len: 7 }],
                wait: false,
                common: Some(Box::new(task)),
            },
            payload.clone(),
        ),
        Frame::SubmitBatchAck(m::SubmitBatchAck {
            req: 1,
            items: vec![m::BatchItem { err: Some(Box::new(err())), ..m::BatchItem::default() }],
            err: None,
        }),
        Frame::Await(m::Await { req: 1, task_id: id.clone(), timeout: 500 }),
        Frame::Outcome(
            Box::new(m::Outcome { req: 1, task_id: id.clone(), state: 5, ..m::Outcome::default() }),
            payload.clone(),
        ),
        Frame::Watch(m::Watch {
            req: 1,
            filter: Some(m::Filter { namespace: Some("main".to_owned()), ..m::Filter::default() }),
            from_seq: 9,
            stop: false,
        }),
        Frame::Event(Box::new(m::Event {
            req: 1,
            seq: 9,
            kind: "task_settled".to_owned(),
            body: Some(m::Happening { task_id: id.clone(), ..m::Happening::default() }),
            missed: 3,
            err: None,
        })),
        Frame::CancelTask(m::CancelTask {
            req: 1,
            owner_key: Bytes::from_static(b"owner"),
            below_generation: Some(0),
            reason: "replaced".to_owned(),
            grace: Some(0),
            namespace: "main".to_owned(),
            ..m::CancelTask::default()
        }),
        Frame::CancelTaskAck(m::CancelTaskAck { req: 1, affected: 2, state: 8, err: None }),
        Frame::Query(m::Query {
            req: 1,
            kind: 2,
            filter: Some(m::Filter { state: Some(2), ..m::Filter::default() }),
            page: Some(m::Page { size: 10, token: id.clone() }),
        }),
        Frame::Reply(m::Reply {
            req: 1,
            tasks: vec![m::TaskInfo { task_id: id, ..m::TaskInfo::default() }],
            workers: vec![m::WorkerInfo::default()],
            pools: vec![m::PoolInfo::default()],
            ..m::Reply::default()
        }),
        Frame::Admin(m::Admin { req: 1, op: 5, target: "9".to_owned(), args: vec![pair()] }),
        Frame::AdminAck(m::AdminAck { req: 1, affected: 1, err: None }),
        Frame::Payload { stream_ref: 9, offset: 65_536, last: true, bytes: payload },
    ]
}
