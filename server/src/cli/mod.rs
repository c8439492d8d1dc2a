//! The command tree: what can be typed, its help and its defaults.

mod help;
pub(crate) mod refusal;
pub(crate) mod unit;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum, ValueHint};
use slipswitch_core::{ActivityType, Namespace, Node, TaskId, TaskQueue};

use help::{
    COMPLETIONS_EXAMPLES, DEMO_EXAMPLES, DEV_EXAMPLES, EXIT_CODES, MAN_EXAMPLES,
    POOLS_LIST_EXAMPLES, SERVE_EXAMPLES, SUBMIT_EXAMPLES, SUBMIT_LONG, TASKS_GET_EXAMPLES,
    TASKS_LIST_EXAMPLES, TASKS_RESULT_EXAMPLES, WORKER_EXAMPLES, WORKER_LONG,
    WORKERS_DRAIN_EXAMPLES, WORKERS_LIST_EXAMPLES,
};
use unit::{Size, Span};

/// Where a server listens and a client looks when nothing else is said.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:4777";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const ABOUT: &str = "A dispatch engine: tasks go in, workers run them, one outcome comes back";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "slip", version, about = ABOUT, after_help = EXIT_CODES, styles = STYLES)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) view: View,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How answers look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct View {
    /// How data is written to standard output
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    #[arg(help_heading = "Output")]
    pub(crate) output: Format,
    /// When to colour; NO_COLOR and CLICOLOR_FORCE are obeyed with auto
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    #[arg(help_heading = "Output")]
    pub(crate) color: ColorChoice,
}

/// The shape of data on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people
    Table,
    /// One JSON value
    Json,
    /// One JSON object a line
    Jsonl,
}

/// Which server a client command speaks to.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server; without it, the one that `slip dev` runs for this user
    #[arg(long, global = true, env = "SLIP_ADDRESS", value_name = "HOST:PORT")]
    #[arg(help_heading = "Server")]
    pub(crate) address: Option<String>,
    /// SHA-256 of the server's certificate, in hex; `slip serve` prints it
    #[arg(long, global = true, env = "SLIP_FINGERPRINT", value_name = "HEX")]
    #[arg(help_heading = "Server")]
    pub(crate) fingerprint: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a server, workers and producers here, kill a worker, check everything [read]
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Run a server for this user and machine and say what to type next [write]
    #[command(after_help = DEV_EXAMPLES)]
    Dev(DevArgs),
    /// Run a server [write]
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Turn any program into a worker [write]
    #[command(after_help = WORKER_EXAMPLES, after_long_help = WORKER_LONG)]
    Worker(WorkerArgs),
    /// Submit tasks [write]
    #[command(after_help = SUBMIT_EXAMPLES, after_long_help = SUBMIT_LONG)]
    Submit(SubmitArgs),
    /// Look at tasks [read]
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Look at workers and drain them [read, write]
    #[command(subcommand)]
    Workers(WorkersCommand),
    /// Look at pools [read]
    #[command(subcommand)]
    Pools(PoolsCommand),
    /// Write the completion script of a shell to standard output [read]
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory [write]
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The directory, made if it is missing
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

/// What the demo starts this program as. Not in the tree: no help, completion or manual has it.
#[derive(Debug, Parser)]
#[command(name = "slip")]
pub(crate) enum Staff {
    /// A server process
    DemoServer,
    /// A worker process
    DemoWorker(DemoWorkerArgs),
}

impl Staff {
    /// Says whether a line is for the demo's processes.
    pub(crate) fn is_meant(first: Option<&std::ffi::OsStr>) -> bool {
        first.is_some_and(|first| first == "demo-server" || first == "demo-worker")
    }
}

/// Looks at tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List tasks, the oldest first [read]
    #[command(after_help = TASKS_LIST_EXAMPLES)]
    List(TasksListArgs),
    /// Show one task, and why it waits [read]
    #[command(after_help = TASKS_GET_EXAMPLES)]
    Get {
        /// The task, as `slip submit` printed it
        id: TaskId,
    },
    /// Write the result of one task to standard output [read]
    #[command(after_help = TASKS_RESULT_EXAMPLES)]
    Result {
        /// The task, as `slip submit` printed it
        id: TaskId,
        /// Wait for the outcome, at most this long
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true)]
        #[arg(default_missing_value = "365d")]
        wait: Option<Span>,
    },
}

/// Looks at workers and drains them.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkersCommand {
    /// List the workers that selection knows [read]
    #[command(after_help = WORKERS_LIST_EXAMPLES)]
    List,
    /// Let a worker finish what it has and send it nothing more [write]
    #[command(after_help = WORKERS_DRAIN_EXAMPLES)]
    Drain {
        /// The worker's number, as `slip workers list` shows it
        worker: u64,
    },
}

/// Looks at pools.
#[derive(Debug, Subcommand)]
pub(crate) enum PoolsCommand {
    /// List the pools that have workers or tasks [read]
    #[command(after_help = POOLS_LIST_EXAMPLES)]
    List,
}

/// `slip demo`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// Tasks of the first act; the second has a tenth of them
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub(crate) tasks: u64,
    /// Worker processes
    #[arg(long, value_name = "W", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=256))]
    pub(crate) workers: u16,
    /// Bytes of each task's payload
    #[arg(long, value_name = "B", default_value = "64")]
    pub(crate) payload: Size,
}

/// `slip dev`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DevArgs {
    /// A loopback address and port; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = DEFAULT_LISTEN)]
    pub(crate) listen: SocketAddr,
    /// Threads that carry connections; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) io_threads: Option<u16>,
}

/// `slip serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// A loopback address and port; port 0 takes a free one
    #[arg(long, env = "SLIP_LISTEN", value_name = "IP:PORT", default_value = DEFAULT_LISTEN)]
    pub(crate) listen: SocketAddr,
    /// Threads that carry connections; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) io_threads: Option<u16>,
    /// How long a drain may take before what is left is given up
    #[arg(long, value_name = "DUR", default_value = "25s")]
    pub(crate) drain_timeout: Span,
}

/// `slip worker`.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("handler").required(true).args(["exec", "echo"]))]
pub(crate) struct WorkerArgs {
    /// The activity type that this worker runs
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) activity_type: ActivityType,
    /// The program to run for each task: payload on stdin, result on stdout
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub(crate) exec: Option<String>,
    /// Give each payload back as its result
    #[arg(long)]
    pub(crate) echo: bool,
    /// Tasks that run at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) slots: u16,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The node of this worker; tasks that require it run here
    #[arg(long)]
    pub(crate) node: Option<Node>,
    /// The longest that one run may take; longer is a retryable failure
    #[arg(long, value_name = "DUR", conflicts_with = "echo")]
    pub(crate) timeout: Option<Span>,
    /// The most that one run may write as its result; more is a terminal failure
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub(crate) output_limit: Size,
    /// What results are, as a media type
    #[arg(long, value_name = "MEDIA", default_value = "application/octet-stream")]
    pub(crate) content_type: String,
}

/// Where tasks go and come from.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The task queue
    #[arg(long, env = "SLIP_QUEUE", default_value = "default")]
    pub(crate) queue: TaskQueue,
    /// The namespace
    #[arg(long, env = "SLIP_NAMESPACE", default_value = "default")]
    pub(crate) namespace: Namespace,
}

/// `slip submit`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SubmitArgs {
    /// The activity type: the name of the handler
    #[arg(value_name = "TYPE")]
    pub(crate) activity_type: ActivityType,
    /// The payload: JSON, @FILE for a file, - for standard input
    #[arg(value_name = "JSON|@FILE|-", allow_negative_numbers = true)]
    pub(crate) payload: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Run only on this node, and wait for it
    #[arg(long, value_name = "NODE")]
    pub(crate) require: Option<Node>,
    /// Wait for the outcome, at most this long
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "365d")]
    pub(crate) wait: Option<Span>,
    /// Each line of the input is one task
    #[arg(long)]
    pub(crate) lines: bool,
    /// With --lines, the most tasks on their way at the same time
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "lines")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) in_flight: u32,
    /// What the payload is, as a media type; JSON is checked before it is sent
    #[arg(long, value_name = "MEDIA", default_value = slipswitch_json())]
    pub(crate) content_type: String,
    /// Give up a task that no worker accepted in this time; 0s means now or not at all
    #[arg(long, value_name = "DUR")]
    pub(crate) schedule_to_start: Option<Span>,
    /// Give up a task that has no outcome after this time
    #[arg(long, value_name = "DUR")]
    pub(crate) deadline: Option<Span>,
    /// Attempts in all before a task that fails is given up
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: Option<u32>,
    /// Your own key, handed to the worker
    #[arg(long, value_name = "TEXT")]
    pub(crate) owner_key: Option<String>,
    /// Your own number, handed to the worker
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) ordinal: u64,
    /// The generation of your work that the task belongs to, handed to the worker
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) generation: u64,
}

/// `slip tasks list`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TasksListArgs {
    /// Only tasks of this namespace
    #[arg(long)]
    pub(crate) namespace: Option<Namespace>,
    /// Only tasks of this task queue
    #[arg(long)]
    pub(crate) queue: Option<TaskQueue>,
    /// Only tasks of this activity type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) activity_type: Option<ActivityType>,
    /// Only tasks in this state
    #[arg(long, value_enum)]
    pub(crate) state: Option<State>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,
}

/// A task's state as a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Waits for a time
    Scheduled,
    /// Waits for a worker
    Pending,
    /// Sent to a worker, not accepted yet
    Offered,
    /// Accepted by a worker
    Running,
    /// Has a result
    Completed,
    /// Given up, with a cause
    Dead,
    /// Cancelled
    Cancelled,
}

/// A worker process of the demo.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoWorkerArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Where executed tasks are noted
    #[arg(long)]
    pub(crate) journal: PathBuf,
    /// Credit granted to the server
    #[arg(long)]
    pub(crate) slots: u16,
    /// How long each task takes
    #[arg(long)]
    pub(crate) busy: Span,
    /// Write each record at once
    #[arg(long)]
    pub(crate) write_through: bool,
    /// The task queue
    #[arg(long)]
    pub(crate) queue: TaskQueue,
}

const fn slipswitch_json() -> &'static str {
    "application/json"
}

impl SubmitArgs {
    /// How long to wait for outcomes; `None` if nobody waits.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.wait.map(|span| span.0)
    }
}

#[cfg(test)]
mod tests;
