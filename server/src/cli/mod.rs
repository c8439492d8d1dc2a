//! The command tree: what can be typed, its help and its defaults.

mod help;
pub(crate) mod refusal;
pub(crate) mod unit;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum, ValueHint};
use slipswitch_core::{ActivityType, Namespace, Node, Policy, PoolKey, TaskId, TaskQueue};

use help::{
    COMPLETIONS_EXAMPLES, DEAD_LIST_EXAMPLES, DEAD_REQUEUE_EXAMPLES, DEAD_SHOW_EXAMPLES,
    DEMO_EXAMPLES, DEV_EXAMPLES, DRAIN_EXAMPLES, EXIT_CODES, HOLD_EXAMPLES, MAN_EXAMPLES,
    POOLS_LIST_EXAMPLES, POOLS_SET_EXAMPLES, SERVE_EXAMPLES, SUBMIT_EXAMPLES, SUBMIT_LONG,
    TASKS_CANCEL_EXAMPLES, TASKS_GET_EXAMPLES, TASKS_LIST_EXAMPLES, TASKS_RESULT_EXAMPLES,
    TASKS_RUN_NOW_EXAMPLES, TASKS_SIGNAL_EXAMPLES, WORKER_EXAMPLES, WORKER_LONG,
    WORKERS_CORDON_EXAMPLES, WORKERS_DESCRIBE_EXAMPLES, WORKERS_DRAIN_EXAMPLES,
    WORKERS_EVICT_EXAMPLES, WORKERS_LIST_EXAMPLES,
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
    Submit(Box<SubmitArgs>),
    /// Look at tasks, cancel them, send them signals [read, write, destructive]
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Look at workers, drain them, put them out [read, write, destructive]
    #[command(subcommand)]
    Workers(WorkersCommand),
    /// Let the workers of a scope finish and send them nothing more [write]
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(ScopeArgs),
    /// Keep the tasks of an owner, pool or namespace from being given to workers [write]
    #[command(after_help = HOLD_EXAMPLES)]
    Hold(HoldArgs),
    /// Lift a hold; without a name, list what is held [read, write]
    #[command(after_help = HOLD_EXAMPLES)]
    Release(HoldArgs),
    /// Look at tasks that were given up, requeue or discard them [read, write, destructive]
    #[command(subcommand)]
    Dead(DeadCommand),
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
    /// Cancel a task, or those of an owner [destructive]
    #[command(after_help = TASKS_CANCEL_EXAMPLES)]
    Cancel(CancelArgs),
    /// Send bytes to the handler that is at work on a task [write]
    #[command(after_help = TASKS_SIGNAL_EXAMPLES)]
    Signal {
        /// The task
        id: TaskId,
        /// What kind of signal, in the application's words
        kind: String,
        /// The bytes, as text
        #[arg(default_value = "", hide_default_value = true)]
        payload: String,
    },
    /// Have a task that waits for its time wait for a worker at once [write]
    #[command(after_help = TASKS_RUN_NOW_EXAMPLES)]
    RunNow {
        /// The task
        id: TaskId,
    },
}

/// `slip tasks cancel`.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["id", "owner"]))]
pub(crate) struct CancelArgs {
    /// The task
    pub(crate) id: Option<TaskId>,
    /// All tasks with this owner key
    #[arg(long, value_name = "KEY")]
    pub(crate) owner: Option<String>,
    /// Of an owner's tasks, those of a generation below this one
    #[arg(long, value_name = "N", requires = "owner")]
    pub(crate) below_generation: Option<u64>,
    /// Refuse tasks below that generation from now on
    #[arg(long, requires = "below_generation")]
    pub(crate) supersede: bool,
    /// The owner's namespace
    #[arg(long, env = "SLIP_NAMESPACE", default_value = "default")]
    pub(crate) namespace: Namespace,
    /// Why, for the handler and for people
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// How long a handler may take to stop; 10s if not given
    #[arg(long, value_name = "DUR", conflicts_with = "owner")]
    pub(crate) grace: Option<Span>,
}

/// Looks at tasks that were given up.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List them, the oldest first [read]
    #[command(after_help = DEAD_LIST_EXAMPLES)]
    List {
        #[command(flatten)]
        filter: DeadArgs,
        /// Count those that look alike instead
        #[arg(long, value_name = "WHAT")]
        by: Option<DeadBy>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 100)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
    },
    /// Show one and why it was given up [read]
    #[command(after_help = DEAD_SHOW_EXAMPLES)]
    Show {
        /// The task
        id: TaskId,
    },
    /// Have it live again, from its first attempt [write]
    #[command(after_help = DEAD_REQUEUE_EXAMPLES)]
    Requeue(DeadTarget),
    /// Forget it for good [destructive]
    #[command(after_help = DEAD_REQUEUE_EXAMPLES)]
    Discard(DeadTarget),
}

/// What dead letters are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeadBy {
    /// Class, code and message without its digits
    Fingerprint,
}

/// One dead letter, or all that look alike.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true)
    .args(["id", "all", "namespace", "queue", "activity_type", "reason", "alike"]))]
pub(crate) struct DeadTarget {
    /// The task
    #[arg(conflicts_with_all = ["all", "namespace", "queue", "activity_type", "reason", "alike"])]
    pub(crate) id: Option<TaskId>,
    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) filter: DeadArgs,
}

/// Which dead letters.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadArgs {
    /// Only those of this namespace
    #[arg(long)]
    pub(crate) namespace: Option<Namespace>,
    /// Only those of this task queue
    #[arg(long)]
    pub(crate) queue: Option<TaskQueue>,
    /// Only those of this activity type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) activity_type: Option<ActivityType>,
    /// Only those given up for this reason: terminal_failure, attempts_exhausted, expired, ...
    #[arg(long, value_name = "CLASS")]
    pub(crate) reason: Option<String>,
    /// Only those whose failure has this fingerprint
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) alike: Option<String>,
}

/// What is held or released.
#[derive(Clone, Debug, Args)]
pub(crate) struct HoldArgs {
    /// What kind of thing
    #[arg(value_enum, requires = "name")]
    pub(crate) kind: Option<HoldKind>,
    /// Its name: an owner key, NAMESPACE/QUEUE/TYPE, or a namespace
    pub(crate) name: Option<String>,
    /// The namespace of an owner
    #[arg(long, env = "SLIP_NAMESPACE", default_value = "default")]
    pub(crate) namespace: Namespace,
}

/// What can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HoldKind {
    /// The tasks of one owner key
    Owner,
    /// The tasks of one pool
    Pool,
    /// The tasks of one namespace
    Namespace,
}

/// A scope of a drain or cordon.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("scope").required(true)
    .args(["worker", "node", "pool", "namespace", "build"]))]
pub(crate) struct ScopeArgs {
    /// One worker, by its number
    #[arg(long, value_name = "N")]
    pub(crate) worker: Option<u64>,
    /// All workers on a node, those to come included
    #[arg(long)]
    pub(crate) node: Option<Node>,
    /// The tasks of a pool, wherever they would go
    #[arg(long, value_name = "NAMESPACE/QUEUE/TYPE")]
    pub(crate) pool: Option<PoolKey>,
    /// The tasks of a namespace
    #[arg(long)]
    pub(crate) namespace: Option<Namespace>,
    /// All workers of a build, those to come included
    #[arg(long)]
    pub(crate) build: Option<String>,
    /// Take away what still runs after this time; it waits again, at no charge
    #[arg(long, value_name = "DUR")]
    pub(crate) deadline: Option<Span>,
    /// Lift a drain or cordon of exactly that scope
    #[arg(long, conflicts_with = "deadline")]
    pub(crate) undo: bool,
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
        /// Take away what still runs after this time; it waits again, at no charge
        #[arg(long, value_name = "DUR")]
        deadline: Option<Span>,
    },
    /// Show one worker [read]
    #[command(after_help = WORKERS_DESCRIBE_EXAMPLES)]
    Describe {
        /// The worker's number
        worker: u64,
    },
    /// Send a worker nothing more for now; it stays [write]
    #[command(after_help = WORKERS_CORDON_EXAMPLES)]
    Cordon {
        /// The worker's number
        worker: u64,
    },
    /// Lift the cordon of a worker [write]
    #[command(after_help = WORKERS_CORDON_EXAMPLES)]
    Uncordon {
        /// The worker's number
        worker: u64,
    },
    /// End a worker's session; what it has goes to others [destructive]
    #[command(after_help = WORKERS_EVICT_EXAMPLES)]
    Evict {
        /// The worker's number
        worker: u64,
    },
}

/// Looks at pools.
#[derive(Debug, Subcommand)]
pub(crate) enum PoolsCommand {
    /// List the pools that have workers or tasks [read]
    #[command(after_help = POOLS_LIST_EXAMPLES)]
    List,
    /// Set how the workers of a pool are chosen, until the server ends [write]
    #[command(after_help = POOLS_SET_EXAMPLES)]
    Set {
        /// The pool: NAMESPACE/QUEUE/TYPE
        pool: PoolKey,
        /// How its workers are chosen
        #[arg(long, value_parser = policy_arg())]
        policy: PolicyArg,
    },
}

/// A policy, or the server's default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyArg(pub(crate) Option<Policy>);

/// The words for policies, and `default`.
fn policy_arg() -> impl TypedValueParser<Value = PolicyArg> {
    let words = Policy::ALL.iter().map(|policy| policy.as_str()).chain(["default"]);
    PossibleValuesParser::new(words.map(PossibleValue::new))
        .map(|word| PolicyArg(Policy::from_word(&word)))
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
    /// Its share in pools with the policy least_loaded, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) weight: u32,
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
    /// Run on this node while a worker there has room; may be given 8 times
    #[arg(long, value_name = "NODE")]
    pub(crate) prefer: Vec<Node>,
    /// In a pool with the policy sticky, the same key goes to the same worker
    #[arg(long, value_name = "TEXT")]
    pub(crate) affinity: Option<String>,
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
    /// The same key with the same content is the same task
    #[arg(long, value_name = "TEXT", conflicts_with = "lines")]
    pub(crate) key: Option<String>,
    /// Wait so long before it is given to a worker
    #[arg(long, value_name = "DUR")]
    pub(crate) delay: Option<Span>,
    /// An attempt that takes longer has failed
    #[arg(long, value_name = "DUR")]
    pub(crate) start_to_close: Option<Span>,
    /// A handler that does not beat for so long has failed
    #[arg(long, value_name = "DUR")]
    pub(crate) heartbeat_timeout: Option<Span>,
    /// Keep the outcome so long, at most 24h
    #[arg(long, value_name = "DUR")]
    pub(crate) retention: Option<Span>,
    /// 0 to 9, larger first; 5 if not given
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=9))]
    pub(crate) priority: Option<u8>,
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
    /// Its worker was told to stop
    Cancelling,
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
