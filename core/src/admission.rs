//! Who may do what: principals, grants, and the one function that admits a registration.

use crate::id::InstanceId;
use crate::limits;
use crate::name::{ActivityType, InvalidName, Namespace, Node, PoolKey, TaskQueue};
use crate::sync::StdArc;
use thiserror::Error;

/// What a principal may do in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Register workers and settle tasks.
    Worker,
    /// Submit tasks and wait for them.
    Producer,
    /// Change what runs where.
    Operator,
    /// Look.
    Observer,
}

/// An authenticated identity with its grants. Nothing in core acts without one.
#[derive(Clone, Debug)]
pub struct Principal {
    name: StdArc<str>,
    grants: StdArc<[(Role, Grant)]>,
}

/// The namespaces of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// Every namespace.
    Every,
    /// One namespace.
    Namespace(Namespace),
}

impl Principal {
    /// Creates a principal that may do what the grants say, and nothing else.
    #[must_use]
    pub fn new(name: &str, grants: impl IntoIterator<Item = (Role, Grant)>) -> Self {
        Self { name: name.into(), grants: grants.into_iter().collect() }
    }

    /// Creates a principal that may do everything everywhere.
    #[must_use]
    pub fn operator(name: &str) -> Self {
        let roles = [Role::Worker, Role::Producer, Role::Operator, Role::Observer];
        Self::new(name, roles.map(|role| (role, Grant::Every)))
    }

    /// Its name, for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> StdArc<str> {
        StdArc::clone(&self.name)
    }

    /// Says whether it has the role in the namespace.
    #[must_use]
    pub fn may(&self, role: Role, namespace: &Namespace) -> bool {
        self.grants.iter().any(|(granted, over)| {
            *granted == role
                && match over {
                    Grant::Every => true,
                    Grant::Namespace(name) => name == namespace,
                }
        })
    }

    /// Says whether it has the role in every namespace, those to come included.
    #[must_use]
    pub fn may_everywhere(&self, role: Role) -> bool {
        self.grants.iter().any(|(granted, over)| *granted == role && *over == Grant::Every)
    }

    /// Says whether it may see what lies in the namespace.
    #[must_use]
    pub fn may_see(&self, namespace: &Namespace) -> bool {
        [Role::Observer, Role::Operator, Role::Producer, Role::Worker]
            .iter()
            .any(|role| self.may(*role, namespace))
    }
}

/// Which namespaces exist.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum NamespaceMode {
    /// A namespace exists once somebody who may use it names it.
    #[default]
    Open,
    /// Only these exist.
    Closed(Vec<Namespace>),
}

/// Pools that a worker offers to serve: every namespace with every type, on one queue.
#[derive(Clone, Debug)]
pub struct PoolEntry {
    /// The namespaces.
    pub namespaces: Vec<Namespace>,
    /// The queue.
    pub task_queue: TaskQueue,
    /// The handlers.
    pub types: Vec<ActivityType>,
}

/// What a worker says about itself.
#[derive(Clone, Debug)]
pub struct Register {
    /// What it serves.
    pub pools: Vec<PoolEntry>,
    /// Where it runs.
    pub node: Option<Node>,
    /// Its name for people; no fence.
    pub identity: String,
    /// Random for each start of the process; a second registration of it supersedes the first.
    pub instance: InstanceId,
    /// Which build it runs, for people.
    pub build: String,
    /// Names and values for people.
    pub labels: Vec<(String, String)>,
    /// The ceiling of its credit, 1 to 65,535.
    pub capacity: u32,
    /// Its share under the policy `least_loaded`, 1 to 100.
    pub weight: u32,
}

/// Why one entry of a registration was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// A name is wrong.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The principal has no worker role there.
    #[error("not permitted in namespace {0}")]
    PermissionDenied(Namespace),
    /// The namespace does not exist.
    #[error("namespace {0} does not exist")]
    NotFound(Namespace),
}

/// Why a registration was refused. It left no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Nothing to serve, or no capacity: the worker could never be reached.
    #[error("the registration is empty: {0}")]
    Empty(&'static str),
    /// One of the limits is passed.
    #[error("{count} {limit} are over the limit of {max}")]
    Limit {
        /// Which limit.
        limit: &'static str,
        /// What was asked.
        count: usize,
        /// What is allowed.
        max: usize,
    },
    /// Entries were refused, so all were; a reason for each refused one by its index.
    #[error("{} of the entries are refused, first: {}", .0.len(), .0[0].1)]
    Entries(Vec<(usize, EntryError)>),
    /// The server is leaving, or the worker's node or build is drained.
    #[error("the server, or the worker's node or build, is draining")]
    Draining,
    /// No slot is free.
    #[error("the server has no room for another worker")]
    Full,
}

/// A registration that passed admission. Only [`admit`] makes one, and only for a principal.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) principal: Principal,
    pub(crate) keys: Vec<PoolKey>,
    pub(crate) register: Register,
}

/// Judges a registration: the one admission function for every door. All or nothing.
pub(crate) fn admit(
    principal: &Principal,
    mode: &NamespaceMode,
    register: Register,
) -> Result<Admitted, RegisterError> {
    if register.pools.is_empty() {
        return Err(RegisterError::Empty("it names no pool"));
    }
    if register.capacity == 0 {
        return Err(RegisterError::Empty("its capacity is 0"));
    }
    if register.weight == 0 {
        return Err(RegisterError::Empty("its weight is 0"));
    }
    let most = |limit, count, max| {
        if count > max { Err(RegisterError::Limit { limit, count, max }) } else { Ok(()) }
    };
    let capacity = register.capacity as usize;
    most("credits", capacity, crate::credit::CREDIT_MAX as usize)?;
    most("parts of weight", register.weight as usize, limits::WEIGHT_MAX)?;
    most("task queues", register.pools.len(), limits::QUEUES_MAX)?;
    most("labels", register.labels.len(), limits::LABELS_MAX)?;
    let mut refused = Vec::new();
    let mut keys = Vec::new();
    let mut namespaces: Vec<&Namespace> = Vec::new();
    let mut types = 0;
    for (index, entry) in register.pools.iter().enumerate() {
        if entry.namespaces.is_empty() {
            return Err(RegisterError::Empty("a pool entry names no namespace"));
        }
        if entry.types.is_empty() {
            return Err(RegisterError::Empty("a pool entry names no activity type"));
        }
        types += entry.types.len();
        namespaces.extend(&entry.namespaces);
        most("keys", keys.len() + entry.namespaces.len() * entry.types.len(), limits::KEYS_MAX)?;
        for namespace in &entry.namespaces {
            if !principal.may(Role::Worker, namespace) {
                refused.push((index, EntryError::PermissionDenied(namespace.clone())));
                continue;
            }
            if let NamespaceMode::Closed(existing) = mode
                && !existing.contains(namespace)
            {
                refused.push((index, EntryError::NotFound(namespace.clone())));
                continue;
            }
            keys.extend(entry.types.iter().map(|activity_type| PoolKey {
                namespace: namespace.clone(),
                task_queue: entry.task_queue.clone(),
                activity_type: activity_type.clone(),
            }));
        }
    }
    namespaces.sort_unstable();
    namespaces.dedup();
    most("namespaces", namespaces.len(), limits::NAMESPACES_MAX)?;
    most("activity types", types, limits::TYPES_MAX)?;
    if !refused.is_empty() {
        return Err(RegisterError::Entries(refused));
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(Admitted { principal: principal.clone(), keys, register })
}
