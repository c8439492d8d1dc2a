//! The table of a task's life, cell by cell, over the real engine (specification 9).

use std::time::Duration;

use slipswitch_core::{
    AdminError, Beat, Cancel, CloseReason, Config, DrainScope, FailureClass, Lease, LifeEvent,
    LifeNext, Offer, RejectCode, Report, TaskId, TaskOptions, TaskState, Verdict, WorkerSession,
};

use crate::bed::{Bed, completed, failed, key};

const POOL: &str = "main/default/work";
const SOON: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(3_600);

/// A task in some state, made so that of all times only that of the event is near.
struct Cell {
    bed: Bed,
    worker: WorkerSession,
    id: TaskId,
    offer: Option<Offer>,
    event: LifeEvent,
}

fn soon_if(event: LifeEvent, is: LifeEvent) -> Duration {
    if event == is { SOON } else { LATE }
}

fn options(state: TaskState, event: LifeEvent) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.retry.initial = LATE;
    options.retry.cap = LATE;
    options.deadline = Some(soon_if(event, LifeEvent::Deadline));
    options.schedule_to_start = Some(soon_if(event, LifeEvent::ScheduleToStart));
    let rare = options.rare_mut();
    rare.start_to_close = Some(soon_if(event, LifeEvent::StartToClose));
    rare.heartbeat_timeout = Some(soon_if(event, LifeEvent::HeartbeatOver));
    rare.retention = Some(soon_if(event, LifeEvent::RetentionOver));
    rare.delay = (state == TaskState::Scheduled).then(|| soon_if(event, LifeEvent::Due));
    if event == LifeEvent::LastRetryable {
        options.retry.max_attempts = 1;
    }
    if event == LifeEvent::LastLoss {
        options.max_lost_deliveries = 1;
    }
    options
}

impl Cell {
    fn new(state: TaskState, event: LifeEvent) -> Self {
        let mut bed = Bed::with(Config {
            accept_timeout: soon_if(event, LifeEvent::AcceptTimeout),
            lease_ttl: soon_if(event, LifeEvent::LeaseExpiry),
            ..Config::default()
        });
        let mut worker = bed.worker(&[POOL], 0);
        let id = bed.submit_with(POOL, options(state, event));
        let grace = Some(soon_if(event, LifeEvent::GraceOver));
        let cancel = Cancel { grace, ..Cancel::default() };
        let mut offer = None;
        let is_with =
            !matches!(state, TaskState::Scheduled | TaskState::Pending | TaskState::Cancelled);
        if is_with {
            worker.credit(1, 2, bed.now);
            let offered = worker.poll_offer(bed.now).expect("an offer");
            if state != TaskState::Offered {
                worker.accept(offered.lease, bed.now);
            }
            offer = Some(offered);
        }
        if matches!(state, TaskState::Cancelling | TaskState::Cancelled) {
            let cancelled = bed.engine.cancel(&bed.operator, id, &cancel, bed.now);
            assert!(cancelled.expect("known").changed);
        }
        let report = match (state, &offer) {
            (TaskState::Dead, Some(offer)) => Some(failed(offer, FailureClass::Terminal, "broken")),
            (TaskState::Completed, Some(offer)) => Some(completed(offer, b"done")),
            _ => None,
        };
        if let Some(report) = report {
            assert_eq!(worker.result(report, bed.now), Verdict::Applied);
        }
        assert_eq!(bed.state(id), state, "before {event:?}");
        Self { bed, worker, id, offer, event }
    }

    fn lease(&self) -> Lease {
        self.offer.as_ref().map_or(Lease { id: 0, epoch: 9 }, |offer| offer.lease)
    }

    fn report(&mut self, report: impl FnOnce(&Offer) -> Report) {
        if let Some(offer) = self.offer.clone() {
            self.worker.result(report(&offer), self.bed.now);
        }
    }

    fn happen(&mut self) {
        let now = self.bed.now;
        if self.event != LifeEvent::Offer {
            // It is not given to the same worker again.
            self.worker.credit(0, 3, now);
        }
        let (engine, operator) = (&self.bed.engine, &self.bed.operator);
        match self.event {
            LifeEvent::Offer => self.worker.credit(1, 3, now),
            LifeEvent::Accept => self.worker.accept(self.lease(), now),
            LifeEvent::Reject => self.worker.reject(self.lease(), RejectCode::NoCapacity, now),
            LifeEvent::RunNow => {
                let answer = engine.run_now(operator, self.id, now);
                let state = self.bed.state(self.id);
                if !matches!(state, TaskState::Scheduled | TaskState::Pending) {
                    assert_eq!(answer, Err(AdminError::InvalidState(state)));
                }
            }
            LifeEvent::Cancel => {
                let listed = self.event.in_state(self.bed.state(self.id)).is_some();
                let answer = engine.cancel(operator, self.id, &Cancel::default(), now);
                assert_eq!(answer.expect("known").changed, listed);
            }
            LifeEvent::Requeue => drop(engine.requeue(operator, self.id, now)),
            LifeEvent::Discard => drop(engine.discard(operator, self.id)),
            LifeEvent::Completed => self.report(|offer| completed(offer, b"done")),
            LifeEvent::Retryable | LifeEvent::LastRetryable => {
                self.report(|offer| failed(offer, FailureClass::Retryable, "boom"));
            }
            LifeEvent::Terminal => {
                self.report(|offer| failed(offer, FailureClass::Terminal, "boom"));
            }
            LifeEvent::Infrastructure | LifeEvent::LastLoss => {
                self.report(|offer| failed(offer, FailureClass::Infrastructure, "boom"));
            }
            LifeEvent::SessionLost => {
                self.worker.close(CloseReason::StreamClosed, now);
                self.bed.pass(Duration::from_millis(2_100));
            }
            LifeEvent::Park => {
                self.bed.drain_until(DrainScope::Pool(key(POOL)), Some(SOON));
                self.pass();
                self.worker.hear(self.bed.now);
            }
            _ => self.pass(),
        }
    }

    /// Lets the near time be over; other leases than those that should lapse are kept alive.
    fn pass(&mut self) {
        self.bed.pass_with(SOON + Duration::from_millis(50), &mut [&mut self.worker]);
        let silent = [LifeEvent::LeaseExpiry, LifeEvent::HeartbeatOver].contains(&self.event);
        if !silent {
            self.worker.beat(Beat::All, self.bed.now);
        }
    }
}

const STATES: [TaskState; 8] = [
    TaskState::Scheduled,
    TaskState::Pending,
    TaskState::Offered,
    TaskState::Running,
    TaskState::Cancelling,
    TaskState::Completed,
    TaskState::Dead,
    TaskState::Cancelled,
];

#[test]
fn state_table_exhaustive() {
    for state in STATES {
        for event in LifeEvent::ALL {
            let mut cell = Cell::new(state, event);
            cell.happen();
            let found = cell.bed.engine.task(&cell.bed.operator, cell.id);
            let found = found.map(|status| status.state);
            let expected = match event.in_state(state) {
                Some(LifeNext::Removed) => None,
                Some(LifeNext::State(next)) => Some(next),
                _ => Some(state),
            };
            assert_eq!(found, expected, "{event:?} while {state}");
        }
    }
}

#[test]
fn counters_move_as_the_outcome_classes_say() {
    for event in LifeEvent::ALL {
        for state in [TaskState::Offered, TaskState::Running] {
            let mut cell = Cell::new(state, event);
            cell.happen();
            let Some(status) = cell.bed.engine.task(&cell.bed.operator, cell.id) else { continue };
            let listed = event.in_state(state).is_some();
            let fails = [LifeEvent::Retryable, LifeEvent::StartToClose, LifeEvent::HeartbeatOver];
            let mut loses =
                vec![LifeEvent::Infrastructure, LifeEvent::LastLoss, LifeEvent::LeaseExpiry];
            if state == TaskState::Running {
                loses.extend([LifeEvent::SessionLost, LifeEvent::Reject]);
            }
            let attempt = 1 + u32::from(listed && fails.contains(&event));
            let lost = u32::from(listed && loses.contains(&event));
            let counters = (status.attempt, status.lost);
            assert_eq!(counters, (attempt, lost), "{event:?} while {state}");
        }
    }
}

#[test]
fn nothing_is_left_of_any_path() {
    for state in STATES {
        for event in LifeEvent::ALL {
            let mut cell = Cell::new(state, event);
            cell.happen();
            let cancel = Cancel { grace: Some(Duration::ZERO), ..Cancel::default() };
            cell.bed.engine.cancel(&cell.bed.operator, cell.id, &cancel, cell.bed.now).ok();
            cell.bed.pass(Duration::from_millis(20));
            cell.worker.close(CloseReason::ClientGoodbye, cell.bed.now);
            let known = cell.bed.engine.task(&cell.bed.operator, cell.id);
            let ended = known.is_none_or(|status| status.state.is_terminal());
            assert!(ended, "{event:?} while {state}");
            let (_, pools) = cell.bed.engine.pools(&cell.bed.operator);
            assert!(pools.iter().all(|pool| pool.waiting == 0), "{event:?} while {state}");
            assert_eq!(cell.bed.engine.in_flight(), 0, "{event:?} while {state}");
            assert_eq!(cell.bed.engine.backlog_bytes(), 0, "{event:?} while {state}");
        }
    }
}
