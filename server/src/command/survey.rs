//! `slip workers` and `slip pools`.

use serde::Serialize;
use slipswitch::WorkerId;

use super::view::{PoolView, WorkerView};
use super::{Reach, failing, runtime};
use crate::cli::Format;
use crate::output;
use crate::report::{Exit, Report};

/// Lists workers.
pub(super) fn workers(reach: &Reach, format: Format) -> Result<Exit, Report> {
    let workers = runtime()?.block_on(async {
        let client = reach.client().await?;
        let workers = client.workers().await.map_err(|error| failing::query(&error));
        client.close().await;
        workers
    })?;
    let rows: Vec<WorkerView> = workers.iter().map(WorkerView::of).collect();
    output::list(&rows, format, "workers")?;
    Ok(Exit::Done)
}

/// What a drain did.
#[derive(Debug, Serialize)]
struct Draining {
    worker: u64,
    draining: bool,
}

/// Drains a worker: when this returns nothing more is sent to it.
pub(super) fn drain(reach: &Reach, worker: u64, format: Format) -> Result<Exit, Report> {
    runtime()?.block_on(async {
        let client = reach.client().await?;
        let drained = client.drain_worker(WorkerId::new(worker)).await;
        client.close().await;
        drained.map_err(|error| failing::query(&error))
    })?;
    match format {
        Format::Table => output::text(&format!("worker {worker} is draining"))?,
        Format::Json | Format::Jsonl => output::object(&Draining { worker, draining: true })?,
    }
    Ok(Exit::Done)
}

/// Lists pools.
pub(super) fn pools(reach: &Reach, format: Format) -> Result<Exit, Report> {
    let pools = runtime()?.block_on(async {
        let client = reach.client().await?;
        let pools = client.pools().await.map_err(|error| failing::query(&error));
        client.close().await;
        pools
    })?;
    let rows: Vec<PoolView> = pools.iter().map(PoolView::of).collect();
    output::list(&rows, format, "pools")?;
    Ok(Exit::Done)
}
