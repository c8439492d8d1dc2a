//! `slip workers` and `slip pools`.

use super::view::{PoolView, WorkerView};
use super::{Reach, failing, runtime};
use crate::cli::Format;
use crate::output;
use crate::report::{Exit, Fault, Report};

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

/// Shows one worker.
pub(super) fn worker(reach: &Reach, number: u64, format: Format) -> Result<Exit, Report> {
    let workers = runtime()?.block_on(async {
        let client = reach.client().await?;
        let workers = client.workers().await.map_err(|error| failing::query(&error));
        client.close().await;
        workers
    })?;
    let found = workers.iter().find(|worker| worker.worker_id.as_u64() == number);
    let found = found.ok_or_else(|| {
        Report::new(
            Exit::NotFound,
            Fault::Input,
            format!("no worker {number} is connected"),
            "slip workers list shows those that are",
        )
    })?;
    let view = WorkerView::of(found);
    match format {
        Format::Table => output::facts(&view.facts())?,
        Format::Json | Format::Jsonl => output::object(&view)?,
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
