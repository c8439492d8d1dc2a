//! What peers hand in, judged before the engine sees it: names, limits, options.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    CellFamily, Engine, InstanceId, Namespace, NewTask, Node, PoolEntry, PoolKey, Rare, Register,
    RetryKind, RetryPolicy, Route, TaskId, TaskOptions, TaskQueue, Text, Trace,
};

use super::answer::{err, submit_error};
use crate::proto::messages as m;
use crate::proto::{WireCode, limits};

/// Routes by the names as they came: a name that was seen is not parsed again.
#[derive(Debug, Default)]
pub(super) struct Routes {
    last: Option<(Names, Route)>,
    others: Vec<(Names, Route)>,
}

/// Pools of one session that are remembered.
const ROUTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Names {
    namespace: Bytes,
    task_queue: Bytes,
    activity_type: Bytes,
}

impl Names {
    fn are(&self, task: &m::TaskSpec) -> bool {
        self.activity_type == task.r#type
            && self.namespace == task.namespace
            && self.task_queue == task.task_queue
    }

    /// A copy that keeps no frame alive.
    fn of(task: &m::TaskSpec) -> Self {
        let copy = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        Self {
            namespace: copy(&task.namespace),
            task_queue: copy(&task.task_queue),
            activity_type: copy(&task.r#type),
        }
    }
}

impl Routes {
    /// The route of a task's pool.
    pub(super) fn of<F: CellFamily>(
        &mut self,
        engine: &Engine<F>,
        task: &m::TaskSpec,
    ) -> Result<&mut Route, m::Err> {
        if !self.last.as_ref().is_some_and(|(names, _)| names.are(task)) {
            let found = match self.others.iter().position(|(names, _)| names.are(task)) {
                Some(at) => self.others.swap_remove(at),
                None => (Names::of(task), resolve(engine, task)?),
            };
            if let Some(before) = self.last.replace(found) {
                if self.others.len() >= ROUTES_MAX {
                    self.others.clear();
                }
                self.others.push(before);
            }
        }
        let last = self.last.as_mut().map(|(_, route)| route);
        last.ok_or_else(|| err(WireCode::Internal, "the route was lost"))
    }
}

fn resolve<F: CellFamily>(engine: &Engine<F>, task: &m::TaskSpec) -> Result<Route, m::Err> {
    let text = |bytes: &Bytes| {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|_| err(WireCode::InvalidName, "a name is not UTF-8"))
    };
    let (namespace, queue) = (text(&task.namespace)?, text(&task.task_queue)?);
    let key = PoolKey::new(&namespace, &queue, &text(&task.r#type)?);
    let key = key.map_err(|error| err(WireCode::InvalidName, error.to_string()))?;
    engine.route(&key).map_err(|error| submit_error(&error))
}

fn within(what: &str, size: usize, max: usize) -> Result<(), m::Err> {
    if size <= max {
        return Ok(());
    }
    Err(err(WireCode::LimitExceeded, format!("{what}: {size}, at most {max}")))
}

/// A span of time within its limit.
pub(super) fn time(what: &str, millis: u64) -> Result<Duration, m::Err> {
    let time = Duration::from_millis(millis);
    if time > limits::TIME_MAX {
        let max = limits::TIME_MAX.as_millis();
        let what = format!("{what}: {millis} ms, at most {max} ms");
        return Err(err(WireCode::LimitExceeded, what));
    }
    Ok(time)
}

fn text(what: &str, bytes: Bytes, max: usize) -> Result<Text, m::Err> {
    within(&format!("bytes of the {what}"), bytes.len(), max)?;
    Text::from_bytes(bytes)
        .ok_or_else(|| err(WireCode::Malformed, format!("the {what} is not UTF-8")))
}

/// Why something is cancelled, for people.
pub(super) fn reason(reason: &str) -> Result<Text, m::Err> {
    text("reason", Bytes::copy_from_slice(reason.as_bytes()), limits::MESSAGE_MAX)
}

/// A payload that was too long to be kept.
pub(super) fn too_long(size: usize, max: usize) -> m::Err {
    err(WireCode::LimitExceeded, format!("payload bytes: {size}, at most {max}"))
}

/// A payload within its limit.
pub(super) fn payload(payload: Bytes, payload_max: usize) -> Result<Bytes, m::Err> {
    within("payload bytes", payload.len(), payload_max)?;
    Ok(payload)
}

/// A task as the engine takes it. `id` makes one if the producer did not.
pub(super) fn task(
    spec: m::TaskSpec,
    bytes: Bytes,
    payload_max: usize,
    wall_clock: u64,
    id: impl FnOnce() -> TaskId,
) -> Result<NewTask, m::Err> {
    let payload = payload(bytes, payload_max)?;
    let id = if spec.task_id.is_empty() {
        id()
    } else {
        TaskId::from_slice(&spec.task_id)
            .ok_or_else(|| err(WireCode::Malformed, "a task id has 16 bytes"))?
    };
    Ok(NewTask { id, payload, options: options(spec, wall_clock)? })
}

/// What a producer says about a task, judged. `wall_clock` is the server's, in milliseconds.
pub(super) fn options(spec: m::TaskSpec, wall_clock: u64) -> Result<TaskOptions, m::Err> {
    unsupported(&spec)?;
    within("headers", spec.headers.len(), limits::TASK_HEADERS_MAX)?;
    let sizes = spec.headers.iter().map(|pair| pair.name.len().saturating_add(pair.value.len()));
    within("bytes of all headers", sizes.sum(), limits::TASK_HEADER_BYTES_MAX)?;
    within("bytes of the owner key", spec.owner_key.len(), limits::KEY_MAX)?;
    let mut options = TaskOptions::default();
    options.rare = rare(&spec, wall_clock)?.map(Box::new);
    options.content_type = text("content type", spec.content_type, limits::CONTENT_TYPE_MAX)?;
    options.encoding = text("encoding", spec.encoding, limits::CONTENT_TYPE_MAX)?;
    options.headers = spec.headers.into_iter().map(|pair| (pair.name, pair.value)).collect();
    if let Some(node) = spec.require {
        let node = Node::new(&node).map_err(|e| err(WireCode::InvalidName, e.to_string()))?;
        options.require = Some(node);
    }
    if let Some(priority) = spec.priority {
        options.priority = u8::try_from(priority).unwrap_or(u8::MAX);
    }
    if let Some(millis) = spec.schedule_to_start {
        options.schedule_to_start = Some(time("schedule_to_start", millis)?);
    }
    if let Some(millis) = spec.deadline {
        options.deadline = Some(time("deadline", millis)?);
    }
    if let Some(policy) = spec.retry {
        options.retry = retry(*policy)?;
    }
    if let Some(most) = spec.max_lost_deliveries {
        options.max_lost_deliveries = most;
    }
    options.owner_key = spec.owner_key;
    options.ordinal = spec.ordinal;
    options.generation = spec.generation;
    Ok(options)
}

/// What few tasks ask for; nothing if this one does not.
fn rare(spec: &m::TaskSpec, wall_clock: u64) -> Result<Option<Rare>, m::Err> {
    let mut rare = Rare::default();
    let visible = spec.visible_after.map(|at| at.saturating_sub(wall_clock));
    if spec.delay.is_some() && visible.is_some() {
        return Err(err(WireCode::Malformed, "a task has a delay or visible_after, not both"));
    }
    let limited =
        |what: &str, millis: Option<u64>| millis.map(|millis| time(what, millis)).transpose();
    rare.delay = limited("delay", spec.delay.or(visible))?.filter(|delay| !delay.is_zero());
    rare.start_to_close = limited("start_to_close", spec.start_to_close)?;
    rare.heartbeat_timeout = limited("heartbeat_timeout", spec.heartbeat_timeout)?;
    rare.retention = limited("retention", spec.retention)?;
    rare.resume_grace = limited("resume_grace", spec.resume_grace)?;
    if let Some(key) = &spec.idempotency_key {
        within("bytes of the idempotency key", key.len(), limits::KEY_MAX)?;
        rare.idempotency_key = key.clone();
    }
    within("nodes to prefer", spec.prefer.len(), limits::PREFER_MAX)?;
    let prefer = spec.prefer.iter().map(|node| Node::new(node));
    rare.prefer =
        prefer.collect::<Result<_, _>>().map_err(|e| err(WireCode::InvalidName, e.to_string()))?;
    if let Some(key) = &spec.affinity_key {
        within("bytes of the affinity key", key.len(), limits::KEY_MAX)?;
        rare.affinity_key = key.clone();
    }
    if let Some(trace) = &spec.trace {
        let m::Trace { parent, state, baggage } = &**trace;
        let size = parent.len().saturating_add(state.len()).saturating_add(baggage.len());
        within("bytes of the trace", size, limits::TRACE_MAX)?;
        let (parent, state, baggage) = (parent.clone(), state.clone(), baggage.clone());
        rare.trace = Some(Trace { parent, state, baggage });
    }
    let asked = rare.delay.is_some()
        || rare.start_to_close.is_some()
        || rare.heartbeat_timeout.is_some()
        || rare.retention.is_some()
        || rare.resume_grace.is_some()
        || rare.trace.is_some()
        || !rare.prefer.is_empty()
        || !rare.affinity_key.is_empty()
        || !rare.idempotency_key.is_empty();
    Ok(asked.then_some(rare))
}

/// Refuses what would otherwise be ignored.
fn unsupported(spec: &m::TaskSpec) -> Result<(), m::Err> {
    let asked = [
        ("durability", spec.durability == 1),
        ("fairness_key", spec.fairness_key.is_some()),
        ("concurrency_key", spec.concurrency_key.is_some()),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((name, _)) => {
            Err(err(WireCode::Unsupported, format!("this server does not do {name} yet")))
        }
    }
}

fn retry(policy: m::Retry) -> Result<RetryPolicy, m::Err> {
    within("codes that are not retried", policy.non_retryable.len(), limits::NON_RETRYABLE_MAX)?;
    let longest = policy.non_retryable.iter().map(String::len).max().unwrap_or(0);
    within("bytes of a failure code", longest, limits::FAILURE_CODE_MAX)?;
    let mut retry = RetryPolicy::default();
    retry.kind = match policy.kind {
        1 => RetryKind::Fixed,
        2 => RetryKind::Linear,
        3 => RetryKind::Exponential,
        _ => return Err(err(WireCode::Malformed, "the retry policy's kind is not known")),
    };
    retry.initial = time("the retry policy's initial delay", policy.initial)?;
    retry.factor = policy.factor;
    retry.cap = time("the retry policy's cap", policy.cap)?;
    retry.jitter = policy.jitter;
    retry.max_attempts = policy.max_attempts;
    retry.non_retryable = policy.non_retryable;
    Ok(retry)
}

/// A registration as the engine judges it; names that are wrong are named with their entry.
pub(super) fn register(frame: m::Register) -> Result<Register, m::Err> {
    let instance = InstanceId::from_slice(&frame.instance_id)
        .ok_or_else(|| err(WireCode::Malformed, "an instance id has 16 bytes"))?;
    within("bytes of the identity", frame.identity.len(), limits::LABEL_MAX)?;
    within("bytes of the build", frame.build_id.len(), limits::LABEL_MAX)?;
    for label in &frame.labels {
        within("bytes of a label", label.name.len().max(label.value.len()), limits::LABEL_MAX)?;
    }
    let node = frame.node.as_deref().unwrap_or_default();
    let node = Node::optional(node).map_err(|e| err(WireCode::InvalidName, e.to_string()))?;
    Ok(Register {
        pools: pools(&frame.pools)?,
        node,
        identity: frame.identity,
        instance,
        build: frame.build_id,
        labels: frame.labels.into_iter().map(|pair| (pair.name, pair.value)).collect(),
        capacity: frame.capacity,
        weight: frame.weight.max(1),
    })
}

/// The pools of a registration or update.
pub(super) fn pools(entries: &[m::PoolEntry]) -> Result<Vec<PoolEntry>, m::Err> {
    let wrong = |at: usize, error: slipswitch_core::InvalidName| {
        err(WireCode::InvalidName, format!("entry {at}: {error}"))
    };
    let mut pools = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        if entry.types.iter().any(|handler| handler.max_concurrent.is_some()) {
            let what = "this server does not do max_concurrent yet";
            return Err(err(WireCode::Unsupported, what));
        }
        let namespaces: Result<_, _> =
            entry.namespaces.iter().map(|name| Namespace::new(name)).collect();
        let types: Result<_, _> = entry
            .types
            .iter()
            .map(|handler| slipswitch_core::ActivityType::new(&handler.name))
            .collect();
        pools.push(PoolEntry {
            namespaces: namespaces.map_err(|error| wrong(at, error))?,
            task_queue: TaskQueue::or_default(&entry.task_queue).map_err(|e| wrong(at, e))?,
            types: types.map_err(|error| wrong(at, error))?,
        });
    }
    Ok(pools)
}
