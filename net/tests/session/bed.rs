//! An engine, and pairs of sessions with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{Config, Engine, Instant, Notify, Principal, SessionId, TaskId};
use slipswitch_net::client::{ClientHello, ClientSession, Ended, Event, Unsettled};
use slipswitch_net::pipe::Pipe;
use slipswitch_net::proto::messages as m;
use slipswitch_net::server::{Greeting, ServerSession, TaskIds};

pub(crate) type Pair = Pipe<ClientSession, ServerSession>;

#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicUsize);

impl Notify for Bell {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts up from where the session began.
struct Rising(u128);

impl TaskIds for Rising {
    fn next(&mut self, _now: Instant) -> TaskId {
        self.0 += 1;
        TaskId::from_bytes(self.0.to_be_bytes())
    }
}

pub(crate) struct Bed {
    pub(crate) engine: Arc<Engine>,
    pub(crate) operator: Principal,
    pub(crate) now: Instant,
    next: u64,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let now = Instant::from_micros(1_000_000);
        let engine = Engine::new(config, Arc::new(Bell::default()), now);
        Self { engine, operator: Principal::operator("test"), now, next: 0 }
    }

    pub(crate) fn pair(&mut self) -> Pair {
        self.pair_of(self.operator.clone(), Unsettled::default())
    }

    pub(crate) fn pair_of(&mut self, principal: Principal, unsettled: Unsettled) -> Pair {
        self.next += 1;
        let id = SessionId::from_bytes(u128::from(self.next).to_be_bytes());
        let config = Config::default();
        let greeting = Greeting {
            server_id: [7; 16],
            incarnation: 1,
            lease_ttl: config.lease_ttl,
            accept_timeout: config.accept_timeout,
            payload_max: slipswitch_net::proto::limits::PAYLOAD_MAX,
            wall_clock: 0,
        };
        let server = ServerSession::new(
            Arc::clone(&self.engine),
            principal,
            id,
            Arc::new(Bell::default()),
            Box::new(Rising(u128::from(self.next) << 64)),
            greeting,
            self.now,
        );
        let client = ClientSession::new(ClientHello::default(), unsettled, 1, self.now);
        Pipe::new(client, server, self.now)
    }

    /// A pair whose client has registered a worker and granted credit.
    pub(crate) fn worker(&mut self, types: &[&str], credit: u32) -> Pair {
        let mut pair = self.pair();
        self.next += 1;
        self.register(&mut pair, types, credit, self.next);
        pair
    }

    pub(crate) fn register(&self, pair: &mut Pair, types: &[&str], credit: u32, instance: u64) {
        pair.client.register(register(types, instance));
        pair.run().expect("in order");
        let events = events(pair);
        let registered = events.iter().any(|event| {
            matches!(event, Event::Registered(ack) if ack.err.is_none() && ack.worker_id > 0)
        });
        assert!(registered, "{events:?}");
        // Goes out with the next run, so that no offer comes before the test looks for it.
        pair.client.grant(credit);
    }

    /// Lets time pass for the engine and some pairs.
    pub(crate) fn pass(&mut self, time: Duration, pairs: &mut [&mut Pair]) {
        let end = self.now + time;
        while self.now < end {
            let step = Duration::from_millis(20).min(end.saturating_since(self.now));
            self.now += step;
            self.engine.advance(self.now);
            for pair in pairs.iter_mut() {
                let behind = self.now.saturating_since(pair.now());
                pair.pass(behind).expect("in order");
            }
        }
    }
}

pub(crate) fn register(types: &[&str], instance: u64) -> m::Register {
    let entry = |name: &&str| m::TypeEntry { name: (*name).to_owned(), ..m::TypeEntry::default() };
    m::Register {
        req: 9,
        pools: vec![m::PoolEntry {
            namespaces: vec!["main".to_owned()],
            task_queue: String::new(),
            types: types.iter().map(entry).collect(),
        }],
        identity: "worker".to_owned(),
        instance_id: Bytes::copy_from_slice(&u128::from(instance).to_be_bytes()),
        capacity: 1_000,
        ..m::Register::default()
    }
}

pub(crate) fn submit(req: u64, activity_type: &str, wait: bool) -> Box<m::Submit> {
    Box::new(m::Submit { req, task: spec(activity_type), stream_ref: None, wait })
}

pub(crate) fn spec(activity_type: &str) -> m::TaskSpec {
    m::TaskSpec {
        namespace: "main".into(),
        r#type: activity_type.to_owned().into(),
        ..m::TaskSpec::default()
    }
}

/// Everything that the client has heard.
pub(crate) fn events(pair: &mut Pair) -> Vec<Event> {
    std::iter::from_fn(|| pair.client.poll_event()).collect()
}

pub(crate) fn offers(pair: &mut Pair) -> Vec<(m::Offer, Bytes)> {
    let events = events(pair).into_iter();
    let offer = |event| match event {
        Event::Offer(offer, payload) => Some((*offer, payload)),
        _ => None,
    };
    events.filter_map(offer).collect()
}

pub(crate) fn outcomes(pair: &mut Pair) -> Vec<(m::Outcome, Bytes)> {
    let events = events(pair).into_iter();
    let outcome = |event| match event {
        Event::Outcome(outcome, payload) => Some((*outcome, payload)),
        _ => None,
    };
    events.filter_map(outcome).collect()
}

pub(crate) fn verdicts(pair: &mut Pair) -> Vec<u32> {
    let events = events(pair).into_iter();
    let verdict = |event| match event {
        Event::Verdict { verdict, .. } => Some(verdict),
        _ => None,
    };
    events.filter_map(verdict).collect()
}

pub(crate) fn ended(pair: &mut Pair) -> Option<Ended> {
    events(pair).into_iter().find_map(|event| match event {
        Event::Ended(ended) => Some(ended),
        _ => None,
    })
}

pub(crate) fn result(offer: &m::Offer) -> m::TaskResult {
    m::TaskResult {
        task_id: offer.task_id.clone(),
        lease: offer.lease,
        content_type: "text/plain".into(),
        ..m::TaskResult::default()
    }
}

/// Accepts and completes everything offered, and returns how much that was.
pub(crate) fn work(pair: &mut Pair) -> usize {
    let mut done = 0;
    loop {
        pair.run().expect("in order");
        let offers = offers(pair);
        if offers.is_empty() {
            return done;
        }
        for (offer, payload) in offers {
            let now = pair.now();
            pair.client.accept(offer.lease, now);
            pair.client.report(result(&offer), payload);
            done += 1;
        }
    }
}
