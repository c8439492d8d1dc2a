//! What operators do, and which of it is answered later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    CellFamily, DeadFilter, DrainScope, Drained, Hold, Instant, Namespace, Node, Notify, Policy,
    PoolKey, SignalVerdict, TaskId, Verdicts, WorkerId,
};

use super::answer::{self, err};
use super::intake;
use super::query;
use super::session::ServerSession;
use crate::proto::messages as m;
use crate::proto::{Channel, Frame, WireCode, limits};

/// Commands of a session that wait for others.
pub(super) struct Commands {
    verdicts: Arc<Verdicts>,
    /// Signals by their tags.
    signals: BTreeMap<u64, (Channel, u64)>,
    tag: u64,
    drains: Vec<(Channel, u64, Drained)>,
}

impl Commands {
    pub(super) fn new(link: &Arc<dyn Notify>) -> Self {
        Self {
            verdicts: Arc::new(Verdicts::new(Arc::clone(link))),
            signals: BTreeMap::new(),
            tag: 0,
            drains: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.signals.clear();
        self.drains.clear();
    }

    fn waiting(&self) -> usize {
        self.signals.len().saturating_add(self.drains.len())
    }
}

/// What a command came to.
enum Done {
    /// To so many things.
    Now(u64),
    /// It is in force when the sessions have looked.
    When(Drained),
    /// The handler answers.
    Signalled(u64),
}

fn malformed(what: impl Into<String>) -> m::Err {
    err(WireCode::Malformed, what)
}

/// The arguments of a command.
struct Args<'a>(&'a m::Admin);

impl Args<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.args.iter().find(|pair| pair.name == name).map(|pair| pair.value.as_str())
    }

    fn needs(&self, name: &str) -> Result<&str, m::Err> {
        self.get(name).ok_or_else(|| malformed(format!("the command needs {name}")))
    }

    fn number(&self, name: &str) -> Result<u64, m::Err> {
        self.needs(name)?.parse().map_err(|_| malformed(format!("{name} is a number")))
    }

    fn time(&self, name: &str) -> Result<Option<Duration>, m::Err> {
        if self.get(name).is_none() {
            return Ok(None);
        }
        intake::time(name, self.number(name)?).map(Some)
    }

    fn namespace(&self) -> Result<Namespace, m::Err> {
        name(Namespace::new(self.needs("namespace")?))
    }

    fn task(&self) -> Result<TaskId, m::Err> {
        self.0.target.parse().map_err(|_| malformed("the target is not the id of a task"))
    }

    fn worker(&self) -> Result<WorkerId, m::Err> {
        let id = self.0.target.parse().map(WorkerId::new);
        id.map_err(|_| malformed("a worker's id is a number"))
    }

    /// The two sides of `kind:name`.
    fn scope(&self) -> (&str, &str) {
        self.0.target.split_once(':').unwrap_or(("worker", &self.0.target))
    }

    fn owner(&self) -> Result<Bytes, m::Err> {
        match self.scope() {
            ("owner", key) if !key.is_empty() && key.len() <= limits::KEY_MAX => {
                Ok(Bytes::copy_from_slice(key.as_bytes()))
            }
            _ => Err(malformed("the target is owner:KEY, with a key of 1 to 256 bytes")),
        }
    }

    fn hold(&self) -> Result<Hold, m::Err> {
        match self.scope() {
            ("owner", _) => Ok(Hold::Owner(self.namespace()?, self.owner()?)),
            ("pool", key) => Ok(Hold::Pool(pool(key)?)),
            ("namespace", text) => Ok(Hold::Namespace(name(Namespace::new(text))?)),
            _ => Err(malformed(
                "the target is owner:KEY, pool:NAMESPACE/QUEUE/TYPE or namespace:NAME",
            )),
        }
    }

    fn drain(&self) -> Result<DrainScope, m::Err> {
        match self.scope() {
            ("worker", id) => {
                let id = id.parse().map(WorkerId::new);
                Ok(DrainScope::Worker(id.map_err(|_| malformed("a worker's id is a number"))?))
            }
            ("node", text) => Ok(DrainScope::Node(name(Node::new(text))?)),
            ("build", text) => Ok(DrainScope::Build(text.to_owned())),
            ("pool", key) => Ok(DrainScope::Pool(pool(key)?)),
            ("namespace", text) => Ok(DrainScope::Namespace(name(Namespace::new(text))?)),
            (kind, _) => Err(malformed(format!(
                "{kind} cannot be drained: worker, node, build, pool or namespace can"
            ))),
        }
    }

    /// The target is `pool:NAMESPACE/QUEUE/TYPE`; `default` takes back what was set.
    fn policy(&self) -> Result<(PoolKey, Option<Policy>), m::Err> {
        let ("pool", key) = self.scope() else {
            return Err(malformed("the target is pool:NAMESPACE/QUEUE/TYPE"));
        };
        let policy = match self.needs("policy")? {
            "default" => None,
            word => Some(Policy::from_word(word).ok_or_else(|| {
                let words = Policy::ALL.map(Policy::as_str).join(", ");
                malformed(format!("the policy is one of {words}, default"))
            })?),
        };
        Ok((pool(key)?, policy))
    }

    fn dead(&self) -> Result<DeadFilter, m::Err> {
        let filter = m::Filter {
            namespace: self.get("namespace").map(str::to_owned),
            task_queue: self.get("task_queue").map(str::to_owned),
            r#type: self.get("type").map(str::to_owned),
            reason: self.get("reason").map(str::to_owned),
            fingerprint: self.get("fingerprint").map(str::to_owned),
            ..m::Filter::default()
        };
        query::dead_filter(&filter)
    }
}

fn name<T>(name: Result<T, slipswitch_core::InvalidName>) -> Result<T, m::Err> {
    name.map_err(|error| err(WireCode::InvalidName, error.to_string()))
}

fn pool(key: &str) -> Result<PoolKey, m::Err> {
    key.parse().map_err(|error: slipswitch_core::InvalidName| {
        err(WireCode::InvalidName, error.to_string())
    })
}

impl<F: CellFamily> ServerSession<F> {
    pub(super) fn admin(&mut self, channel: Channel, admin: &m::Admin, now: Instant) {
        let req = admin.req;
        let done = if self.commands.waiting() >= limits::REQUESTS_MAX {
            Err(err(WireCode::QuotaExceeded, "too many commands wait on this session"))
        } else {
            self.command(admin, now)
        };
        match done {
            Ok(Done::Now(affected)) => self.acknowledge(channel, req, Ok(affected)),
            Ok(Done::When(drained)) => {
                self.commands.drains.push((channel, req, drained));
                self.hear_drains();
            }
            Ok(Done::Signalled(tag)) => {
                self.commands.signals.insert(tag, (channel, req));
                self.hear_verdicts();
            }
            Err(error) => self.acknowledge(channel, req, Err(error)),
        }
    }

    fn acknowledge(&mut self, channel: Channel, req: u64, done: Result<u64, m::Err>) {
        let ack = match done {
            Ok(affected) => m::AdminAck { req, affected, err: None },
            Err(error) => m::AdminAck { req, affected: 0, err: Some(Box::new(error)) },
        };
        self.answers.push_back((channel, Frame::AdminAck(ack)));
    }

    fn command(&mut self, admin: &m::Admin, now: Instant) -> Result<Done, m::Err> {
        const REQUEUE: u32 = m::AdminOp::Requeue as u32;
        const DISCARD: u32 = m::AdminOp::Discard as u32;
        const HOLD: u32 = m::AdminOp::Hold as u32;
        const RELEASE: u32 = m::AdminOp::Release as u32;
        const DRAIN: u32 = m::AdminOp::Drain as u32;
        const CORDON: u32 = m::AdminOp::Cordon as u32;
        const UNCORDON: u32 = m::AdminOp::Uncordon as u32;
        const EVICT: u32 = m::AdminOp::Evict as u32;
        const SIGNAL: u32 = m::AdminOp::Signal as u32;
        const SUPERSEDE: u32 = m::AdminOp::Supersede as u32;
        const RUN_NOW: u32 = m::AdminOp::RunNow as u32;
        const POLICY: u32 = m::AdminOp::Policy as u32;
        let args = Args(admin);
        let (engine, principal) = (&self.engine, &self.principal);
        let link = Arc::clone(&self.link);
        let done = match admin.op {
            REQUEUE if admin.target.is_empty() => {
                Ok(Done::Now(engine.requeue_all(principal, &args.dead()?, now)))
            }
            REQUEUE => engine.requeue(principal, args.task()?, now).map(|()| Done::Now(1)),
            DISCARD if admin.target.is_empty() => {
                Ok(Done::Now(engine.discard_all(principal, &args.dead()?)))
            }
            DISCARD => engine.discard(principal, args.task()?).map(|()| Done::Now(1)),
            HOLD => engine.hold(principal, &args.hold()?, link, now).map(Done::When),
            RELEASE => engine.release_hold(principal, &args.hold()?, now).map(|()| Done::Now(1)),
            DRAIN => {
                let (scope, deadline) = (args.drain()?, args.time("deadline")?);
                engine.drain_scope(principal, scope, deadline, link, now).map(Done::When)
            }
            CORDON => engine.cordon(principal, args.drain()?, link, now).map(Done::When),
            UNCORDON => engine.uncordon(principal, &args.drain()?, now).map(Done::Now),
            EVICT => engine.evict(principal, args.worker()?, now).map(|()| Done::Now(1)),
            SUPERSEDE => {
                let (namespace, owner) = (args.namespace()?, args.owner()?);
                let generation = args.number("generation")?;
                engine.supersede(principal, &namespace, &owner, generation, now).map(Done::Now)
            }
            POLICY => {
                let (pool, policy) = args.policy()?;
                engine.set_policy(principal, &pool, policy).map(|()| Done::Now(1))
            }
            RUN_NOW => {
                let changed = engine.run_now(principal, args.task()?, now);
                changed.map(|changed| Done::Now(u64::from(changed)))
            }
            SIGNAL => {
                let (id, kind) = (args.task()?, args.needs("kind")?);
                let payload = args.get("payload").unwrap_or_default();
                if kind.len() > limits::CONTENT_TYPE_MAX || payload.len() > limits::SIGNAL_MAX {
                    let max = limits::SIGNAL_MAX;
                    let what = format!("a signal has at most {max} bytes, and a short kind");
                    return Err(err(WireCode::LimitExceeded, what));
                }
                let (kind, payload) = (kind.into(), Bytes::copy_from_slice(payload.as_bytes()));
                self.commands.tag = self.commands.tag.wrapping_add(1);
                let tag = self.commands.tag;
                let verdicts = Arc::clone(&self.commands.verdicts);
                let given = engine.signal(principal, id, kind, payload, verdicts, tag);
                given.map(|()| Done::Signalled(tag))
            }
            _ => return Err(err(WireCode::Unsupported, "this server does not do that yet")),
        };
        done.map_err(answer::admin_error)
    }

    /// Answers the signals that have their verdict.
    pub(super) fn hear_verdicts(&mut self) {
        if self.commands.signals.is_empty() {
            return;
        }
        let verdicts: Vec<_> = self.commands.verdicts.take().collect();
        for (tag, verdict) in verdicts {
            let Some((channel, req)) = self.commands.signals.remove(&tag) else { continue };
            let done = match verdict {
                SignalVerdict::Applied => Ok(1),
                SignalVerdict::Unsupported => {
                    let what = "the handler of the task takes no signals";
                    Err(err(WireCode::Unsupported, what))
                }
                _ => Err(err(WireCode::Stale, "nobody is at work on the task")),
            };
            self.acknowledge(channel, req, done);
        }
    }

    /// Answers the drains that are in force.
    pub(super) fn hear_drains(&mut self) {
        let mut at = 0;
        while at < self.commands.drains.len() {
            if self.commands.drains[at].2.is_done() {
                let (channel, req, drained) = self.commands.drains.swap_remove(at);
                self.acknowledge(channel, req, Ok(drained.workers));
            } else {
                at += 1;
            }
        }
    }

    /// Watching is refused by an event that ends it.
    pub(super) fn watch_events(&mut self, channel: Channel, watch: &m::Watch) {
        let refused = m::Event {
            req: watch.req,
            err: Some(Box::new(err(WireCode::Unsupported, "this server has no events yet"))),
            ..m::Event::default()
        };
        self.answers.push_back((channel, Frame::Event(Box::new(refused))));
    }
}
