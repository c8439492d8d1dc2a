//! Questions about what is there, answered page by page.

use bytes::Bytes;
use prost::Message;
use slipswitch_core::{
    ActivityType, CellFamily, Class, DeadFilter, DeadLetter, Engine, Fingerprint, Hold, HoldStatus,
    Instant, InvalidName, Namespace, PoolStatus, Principal, Reason, TaskFilter, TaskId, TaskQueue,
    TaskState, TaskStatus, WorkerStatus,
};

use super::answer::{class, err, pairs, task_id};
use crate::proto::messages as m;
use crate::proto::{WireCode, limits};

/// Items of a page if the asking side does not say.
const PAGE: usize = 100;
/// Bytes of a page: a header holds more, so that the last item may be large.
const PAGE_BYTES: usize = limits::HEADER_MAX / 4;
/// Pools that are listed of one worker.
const POOLS_LISTED: usize = 256;

/// Answers a question.
pub(super) fn answer<F: CellFamily>(
    engine: &Engine<F>,
    principal: &Principal,
    query: &m::Query,
    now: Instant,
) -> m::Reply {
    let mut reply = m::Reply { req: query.req, ..m::Reply::default() };
    if let Err(error) = fill(engine, principal, query, now, &mut reply) {
        reply = m::Reply { req: query.req, err: Some(Box::new(error)), ..m::Reply::default() };
    }
    reply
}

/// The reply to a question that is not looked at.
pub(super) fn refused(query: &m::Query, why: &str) -> m::Reply {
    let error = err(WireCode::QuotaExceeded, why);
    m::Reply { req: query.req, err: Some(Box::new(error)), ..m::Reply::default() }
}

fn fill<F: CellFamily>(
    engine: &Engine<F>,
    principal: &Principal,
    query: &m::Query,
    now: Instant,
    reply: &mut m::Reply,
) -> Result<(), m::Err> {
    let filter = query.filter.clone().unwrap_or_default();
    let page = query.page.clone().unwrap_or_default();
    let size = match page.size as usize {
        0 => PAGE,
        size => size.min(limits::PAGE_MAX),
    };
    const GET: u32 = m::QueryKind::Get as u32;
    const EXPLAIN: u32 = m::QueryKind::Explain as u32;
    const LIST: u32 = m::QueryKind::List as u32;
    const DEAD: u32 = m::QueryKind::Dead as u32;
    const WORKERS: u32 = m::QueryKind::Workers as u32;
    const POOLS: u32 = m::QueryKind::Pools as u32;
    const STATS: u32 = m::QueryKind::Stats as u32;
    const HOLDS: u32 = m::QueryKind::Holds as u32;
    match query.kind {
        GET | EXPLAIN => {
            let id = TaskId::from_slice(&filter.task_id)
                .ok_or_else(|| err(WireCode::Malformed, "a task id has 16 bytes"))?;
            let status = engine.task(principal, id).ok_or_else(|| {
                err(WireCode::NotFound, "no such task, or its outcome is not kept any more")
            })?;
            reply.tasks.push(task_info(&status, now));
        }
        DEAD => {
            let wanted = dead_filter(&filter)?;
            if !filter.task_id.is_empty() {
                let id = TaskId::from_slice(&filter.task_id)
                    .ok_or_else(|| err(WireCode::Malformed, "a task id has 16 bytes"))?;
                let letter = engine.dead_letter(principal, id);
                let letter =
                    letter.ok_or_else(|| err(WireCode::NotFound, "no such dead letter"))?;
                reply.tasks.extend(dead_info(engine, principal, &letter, now));
                return Ok(());
            }
            let after: u64 = parse_token(&page.token)?.unwrap_or(0);
            let found = engine.dead(principal, &wanted, after, size.saturating_add(1));
            let more = found.len() > size;
            let page = found.iter().take(size);
            let (ids, infos): (Vec<Bytes>, Vec<m::TaskInfo>) = page
                .filter_map(|letter| {
                    let place = Bytes::from(letter.place.to_string());
                    Some((place, dead_info(engine, principal, letter, now)?))
                })
                .unzip();
            reply.tasks = fit(infos.into_iter(), ids, more, &mut reply.next_page);
        }
        HOLDS => {
            reply.holds = engine.holds(principal).iter().map(|hold| hold_info(hold, now)).collect();
        }
        LIST => {
            let wanted = task_filter(&filter)?;
            let after = if page.token.is_empty() {
                None
            } else {
                Some(TaskId::from_slice(&page.token).ok_or_else(bad_token)?)
            };
            // One more than asked says whether there is another page.
            let found = engine.tasks(principal, &wanted, after, size.saturating_add(1));
            let more = found.len() > size;
            let ids = found.iter().take(size).map(|status| task_id(&status.task)).collect();
            let infos = found.iter().take(size).map(|status| task_info(status, now));
            reply.tasks = fit(infos, ids, more, &mut reply.next_page);
        }
        WORKERS => {
            let (generation, workers) = engine.workers(principal);
            reply.generation = generation.as_u64();
            let after: u64 = parse_token(&page.token)?.unwrap_or(0);
            let wanted = |worker: &&WorkerStatus| {
                worker.id.as_u64() > after && serves(&worker.pools, &filter)
            };
            let mut left = workers.iter().filter(wanted);
            let found: Vec<&WorkerStatus> = left.by_ref().take(size).collect();
            let ids = found.iter().map(|w| Bytes::from(w.id.to_string())).collect();
            let infos = found.iter().map(|worker| worker_info(worker, now));
            reply.workers = fit(infos, ids, left.next().is_some(), &mut reply.next_page);
        }
        POOLS | STATS => {
            let (generation, pools) = engine.pools(principal);
            reply.generation = generation.as_u64();
            let after = std::str::from_utf8(&page.token).map_err(|_| bad_token())?;
            let mut left = pools.iter().filter(|pool| {
                let fits = serves(std::slice::from_ref(&pool.key), &filter);
                fits && (after.is_empty() || pool.key.to_string().as_str() > after)
            });
            // The order of the texts, so that a page goes on where the last one ended.
            let mut sorted: Vec<&PoolStatus> = left.by_ref().collect();
            sorted.sort_by_key(|pool| pool.key.to_string());
            let more = sorted.len() > size;
            sorted.truncate(size);
            let ids = sorted.iter().map(|pool| Bytes::from(pool.key.to_string())).collect();
            reply.pools = fit(sorted.iter().map(|p| pool_info(p)), ids, more, &mut reply.next_page);
        }
        _ => return Err(err(WireCode::Unsupported, "this server does not answer that yet")),
    }
    Ok(())
}

/// As many items as fit into a page, and where the next one begins.
fn fit<T: Message>(
    items: impl Iterator<Item = T>,
    ids: Vec<Bytes>,
    more: bool,
    next_page: &mut Bytes,
) -> Vec<T> {
    let mut bytes = 0usize;
    let mut page = Vec::with_capacity(ids.len());
    for (item, id) in items.zip(&ids) {
        bytes = bytes.saturating_add(item.encoded_len());
        page.push(item);
        if bytes > PAGE_BYTES {
            if page.len() < ids.len() || more {
                *next_page = id.clone();
            }
            return page;
        }
    }
    if more && let Some(last) = ids.last() {
        *next_page = last.clone();
    }
    page
}

fn bad_token() -> m::Err {
    err(WireCode::Malformed, "the page's token is none that was given")
}

fn parse_token<T: std::str::FromStr>(token: &Bytes) -> Result<Option<T>, m::Err> {
    if token.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(token).map_err(|_| bad_token())?;
    text.parse().map(Some).map_err(|_| bad_token())
}

fn task_filter(filter: &m::Filter) -> Result<TaskFilter, m::Err> {
    let wrong = |error: InvalidName| err(WireCode::InvalidName, error.to_string());
    let namespace = filter.namespace.as_deref().map(Namespace::new).transpose();
    let task_queue = filter.task_queue.as_deref().map(TaskQueue::or_default).transpose();
    let activity_type = filter.r#type.as_deref().map(ActivityType::new).transpose();
    let state = match filter.state {
        None => None,
        Some(number) => Some(
            state(number)
                .ok_or_else(|| err(WireCode::Malformed, format!("state {number} is not known")))?,
        ),
    };
    Ok(TaskFilter {
        namespace: namespace.map_err(wrong)?,
        task_queue: task_queue.map_err(wrong)?,
        activity_type: activity_type.map_err(wrong)?,
        state,
    })
}

/// Which dead letters are meant.
pub(super) fn dead_filter(filter: &m::Filter) -> Result<DeadFilter, m::Err> {
    let m::Filter { reason, fingerprint, .. } = filter;
    let TaskFilter { namespace, task_queue, activity_type, .. } =
        task_filter(&m::Filter { state: None, ..filter.clone() })?;
    let class = match reason.as_deref() {
        None => None,
        Some(word) => Some(Class::from_word(word).ok_or_else(|| {
            err(WireCode::Malformed, format!("{word} is no reason for which tasks are given up"))
        })?),
    };
    let fingerprint = match fingerprint.as_deref() {
        None => None,
        Some(text) => Some(
            Fingerprint::parse(text)
                .ok_or_else(|| err(WireCode::Malformed, "a fingerprint has 16 hex digits"))?,
        ),
    };
    Ok(DeadFilter { namespace, task_queue, activity_type, class, fingerprint })
}

/// A dead letter, unless it was requeued or discarded this very moment.
fn dead_info<F: CellFamily>(
    engine: &Engine<F>,
    principal: &Principal,
    letter: &DeadLetter,
    now: Instant,
) -> Option<m::TaskInfo> {
    let status = engine.task(principal, letter.task.id())?;
    let fingerprint = letter.fingerprint.to_string();
    Some(m::TaskInfo { fingerprint, ..task_info(&status, now) })
}

fn hold_info(hold: &HoldStatus, now: Instant) -> m::HoldInfo {
    let (scope, name) = match &hold.hold {
        Hold::Owner(namespace, key) => {
            ("owner", format!("{namespace}/{}", String::from_utf8_lossy(key)))
        }
        Hold::Pool(key) => ("pool", key.to_string()),
        Hold::Namespace(namespace) => ("namespace", namespace.to_string()),
        _ => ("", String::new()),
    };
    m::HoldInfo { scope: scope.to_owned(), name, waiting: hold.tasks, age: millis(hold.since, now) }
}

fn state(number: u32) -> Option<TaskState> {
    const STATES: [TaskState; 8] = [
        TaskState::Scheduled,
        TaskState::Pending,
        TaskState::Offered,
        TaskState::Running,
        TaskState::Completed,
        TaskState::Dead,
        TaskState::Cancelled,
        TaskState::Cancelling,
    ];
    STATES.into_iter().find(|state| *state as u32 == number)
}

fn serves(pools: &[slipswitch_core::PoolKey], filter: &m::Filter) -> bool {
    let is =
        |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    pools.iter().any(|key| {
        is(&filter.namespace, key.namespace.as_str())
            && is(&filter.task_queue, key.task_queue.as_str())
            && is(&filter.r#type, key.activity_type.as_str())
    })
}

fn millis(from: Instant, now: Instant) -> u64 {
    u64::try_from(now.saturating_since(from).as_millis()).unwrap_or(u64::MAX)
}

fn task_info(status: &TaskStatus, now: Instant) -> m::TaskInfo {
    let task = &*status.task;
    let (key, options) = (task.pool(), task.options());
    let outcome = status.outcome.as_deref();
    m::TaskInfo {
        task_id: task_id(task),
        namespace: key.namespace.as_str().to_owned(),
        task_queue: key.task_queue.as_str().to_owned(),
        r#type: key.activity_type.as_str().to_owned(),
        state: status.state as u32,
        attempt: status.attempt,
        deliveries: status.deliveries,
        lost: status.lost,
        worker_id: status.worker.map_or(0, |worker| worker.as_u64()),
        epoch: status.lease_epoch,
        reason: status.reason.as_str().to_owned(),
        age: millis(task.submitted(), now),
        require: options.require.as_ref().map_or_else(String::new, ToString::to_string),
        priority: u32::from(options.priority),
        class: outcome.map_or(0, |outcome| class(outcome.class)),
        code: outcome.map_or_else(String::new, |outcome| outcome.code.clone()),
        message: outcome.map_or_else(String::new, |outcome| outcome.message.clone()),
        size: task.size(),
        owner_key: options.owner_key.clone(),
        fingerprint: String::new(),
        held: status.reason == Reason::Held,
    }
}

fn worker_info(worker: &WorkerStatus, now: Instant) -> m::WorkerInfo {
    let text = |node: &slipswitch_core::Node| node.as_str().to_owned();
    m::WorkerInfo {
        worker_id: worker.id.as_u64(),
        identity: worker.identity.clone(),
        node: worker.node.as_ref().map(text).unwrap_or_default(),
        build: worker.build.clone(),
        pools: worker.pools.iter().take(POOLS_LISTED).map(ToString::to_string).collect(),
        credit: worker.credit,
        in_flight: worker.in_flight,
        draining: worker.draining,
        age: millis(worker.connected, now),
        labels: pairs(&worker.labels),
        principal: worker.principal.clone(),
    }
}

fn pool_info(pool: &PoolStatus) -> m::PoolInfo {
    m::PoolInfo {
        namespace: pool.key.namespace.as_str().to_owned(),
        task_queue: pool.key.task_queue.as_str().to_owned(),
        r#type: pool.key.activity_type.as_str().to_owned(),
        workers: pool.workers,
        waiting: pool.waiting,
        credit: pool.credit,
        in_flight: pool.in_flight,
        policy: pool.policy.as_str().to_owned(),
        ..m::PoolInfo::default()
    }
}
