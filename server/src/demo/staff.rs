//! What the children of the demo do: serve, and work.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch::{Context, Failure, Worker, WorkerEvent};
use slipswitch_server::serve::{ServeConfig, serve};
use tracing::Level;

use super::child::asked_to_leave;
use super::journal::{Journal, Note, Record};
use super::labour::{ACTIVITY_TYPE, Head, result};
use crate::cli::DemoWorkerArgs;
use crate::command::{Reach, failing, runtime, serve as serving};
use crate::output;
use crate::report::{Exit, Report};

/// How long the demo's server waits for what is at work.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// `slip demo-server`: a server until the demo is over.
pub(crate) fn server() -> Result<Exit, Report> {
    serving::log(Level::ERROR);
    runtime()?.block_on(async {
        let leave = asked_to_leave();
        let config = ServeConfig::new(([127, 0, 0, 1], 0).into()).io_threads(io_threads());
        let server = serve(config);
        let server = server.map_err(|error| serving::refused(&error))?;
        output::object(&serving::Listening::of(&server))?;
        leave.await;
        server.drain(DRAIN_MAX).await;
        Ok(Exit::Done)
    })
}

/// Half of the cores: the workers and the producer live on this machine, too.
fn io_threads() -> Option<NonZeroUsize> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.div_ceil(2))
}

/// `slip demo-worker`: a worker that notes what it executes.
pub(crate) fn worker(args: &DemoWorkerArgs) -> Result<Exit, Report> {
    serving::log(Level::ERROR);
    let reach = Reach::new(args.server.clone())?;
    runtime()?.block_on(work(&reach, args))
}

async fn work(reach: &Reach, args: &DemoWorkerArgs) -> Result<Exit, Report> {
    let leave = asked_to_leave();
    let journal = Journal::create(&args.journal, args.write_through);
    let journal = Arc::new(journal.map_err(|error| unwritable(&args.journal, &error))?);
    let (noted, refused) = (Arc::clone(&journal), Arc::clone(&journal));
    let (busy, notes_start) = (args.busy.0, args.write_through);
    let worker = Worker::connect(reach.options())
        .credit(args.slots.into())
        .task_queue(args.queue.as_str())
        .no_node()
        .fail_fast()
        .on_event(move |event| tell(&refused, &event))
        .raw(ACTIVITY_TYPE, move |input: Bytes, cx: Context| {
            let journal = Arc::clone(&noted);
            async move {
                let (task, epoch) = (cx.task_id(), cx.lease().epoch);
                if notes_start {
                    note(&journal, Record { note: Note::Started, task, epoch })?;
                }
                if !busy.is_zero() {
                    tokio::time::sleep(busy).await;
                }
                let made = result(Head { epoch, deliveries: cx.deliveries() }, &input);
                note(&journal, Record { note: Note::Executed, task, epoch })?;
                Ok::<_, Failure>(made)
            }
        });
    worker.run_until(leave).await.map_err(|error| failing::worker(&error))?;
    journal.flush().map_err(|error| unwritable(&args.journal, &error))?;
    Ok(Exit::Done)
}

fn note(journal: &Journal, record: Record) -> Result<(), Failure> {
    journal.note(record).map_err(|error| {
        Failure::infrastructure(format_args!("the journal cannot be written: {error}"))
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> Report {
    Report::environment(
        format!("the journal {} cannot be written: {error}", path.display()),
        "free the disk that holds temporary files",
    )
}

fn tell(journal: &Journal, event: &WorkerEvent) {
    match event {
        WorkerEvent::Registered { .. } => {
            // The demo waits for this line.
            let _ = output::text("ready");
        }
        WorkerEvent::ResultRefused { task_id, lease, .. } => {
            // Unnoted, the check takes it for a second settlement and says so.
            let _ =
                journal.note(Record { note: Note::Refused, task: *task_id, epoch: lease.epoch });
        }
        _ => {}
    }
}
