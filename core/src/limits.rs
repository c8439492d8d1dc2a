//! The engine's limits, named in one place. The wire's own are in the net crate.

use std::time::Duration;

/// Namespaces in one registration.
pub const NAMESPACES_MAX: usize = 64;
/// Pool entries, so task queues, in one registration.
pub const QUEUES_MAX: usize = 64;
/// Activity types in one registration.
pub const TYPES_MAX: usize = 1_024;
/// Pools in one registration: namespaces times types, duplicates collapsed.
pub const KEYS_MAX: usize = 4_096;
/// Labels of one worker.
pub const LABELS_MAX: usize = 32;
/// Pools whose policy is set.
pub(crate) const POLICIES_MAX: usize = 100_000;
/// The weight of a worker.
pub(crate) const WEIGHT_MAX: usize = 100;
/// Pools in one namespace.
pub const POOLS_PER_NAMESPACE_MAX: u64 = 10_000;
/// Waiting tasks in one namespace.
pub const BACKLOG_PER_NAMESPACE_MAX: u64 = 1_000_000;
/// Payload bytes of waiting tasks in one server.
pub const BACKLOG_BYTES_MAX: u64 = 1 << 30;
/// Settled tasks kept until somebody asks for the outcome.
pub const UNDELIVERED_MAX: usize = 100_000;
/// Settled tasks kept after the outcome was delivered, for late reports and questions.
pub const DELIVERED_MAX: usize = 4_096;
/// How long a settled task is kept at most.
pub const RETENTION: Duration = Duration::from_secs(60);
/// Offers in a row that were never accepted, after which a task is given up.
pub const LOST_OFFERS_MAX: u32 = 20;
/// Placements of one turn of a pump; the rest is left to the driver.
pub const PLACEMENTS_PER_TURN: usize = 64;
/// Payload bytes of settled tasks that are kept in one server.
pub const RETAINED_BYTES_MAX: u64 = 256 << 20;
/// How often the driver looks for what has outlived its time.
pub const SWEEP: Duration = Duration::from_secs(1);
/// How often the driver looks whether a draining engine is idle.
pub const DRAIN_LOOK: Duration = Duration::from_millis(20);
/// How soon a deadline looks again at a task whose offer was under way.
pub const OFFERED_LOOK: Duration = Duration::from_millis(50);
/// How often a session looks for leases that are over, at most.
pub const EXPIRY_LOOK: Duration = Duration::from_millis(40);
/// How long a worker may take to stop, unless whoever cancels says otherwise.
pub const CANCEL_GRACE: Duration = Duration::from_secs(10);
/// Superseded owners without tasks that are remembered.
pub const IDLE_OWNERS_MAX: usize = 100_000;
/// Dead letters that are kept.
pub const DEAD_MAX: usize = 100_000;
/// Bytes of their payloads.
pub const DEAD_BYTES_MAX: u64 = 256 << 20;
/// How long a dead letter is kept.
pub const DEAD_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The longest delay of a task.
pub const DELAY_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// The longest time for which an outcome can be kept by its task's own word.
pub const RETENTION_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Bytes of the progress of a delivery.
pub const PROGRESS_BYTES_MAX: usize = 16 << 10;
/// Bytes of an owner key or idempotency key.
pub const KEY_BYTES_MAX: usize = 256;
/// Tasks in one server that wait for a time.
pub const SCHEDULED_MAX: u64 = 20_000_000;
/// Signals that one worker has not answered.
pub const SIGNALS_MAX: u32 = 1_024;
