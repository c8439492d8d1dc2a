//! The commands: each turns its arguments into work and its failures into reports.

mod dead;
mod dev;
pub(crate) mod failing;
mod operate;
mod paper;
mod reach;
pub(crate) mod serve;
mod submit;
mod survey;
mod task;
mod view;
mod worker;

use tokio::runtime::{Builder, Runtime};

use crate::cli::{Cli, Command, DeadCommand, PoolsCommand, Staff, TasksCommand, WorkersCommand};
use crate::demo;
use crate::report::{Exit, Report};

pub(crate) use reach::Reach;

/// Does what was typed.
pub(crate) fn run(cli: Cli) -> Result<Exit, Report> {
    let Cli { view, server, command } = cli;
    let format = view.output;
    match command {
        Command::Demo(args) => demo::run(&args, view),
        Command::Dev(args) => dev::run(&args, format),
        Command::Serve(args) => serve::run(&args, format),
        Command::Worker(args) => worker::run(server, args),
        Command::Submit(args) => submit::run(server, *args, format),
        Command::Tasks(command) => {
            let reach = Reach::new(server)?;
            match command {
                TasksCommand::List(args) => task::list(&reach, args, format),
                TasksCommand::Get { id } => task::show(&reach, id, format),
                TasksCommand::Result { id, wait } => {
                    task::result(&reach, id, wait.map(|span| span.0), format)
                }
                TasksCommand::Cancel(args) => operate::cancel(&reach, &args, format),
                TasksCommand::Signal { id, kind, payload } => {
                    operate::signal(&reach, id, &kind, &payload, format)
                }
                TasksCommand::RunNow { id } => operate::run_now(&reach, id, format),
            }
        }
        Command::Workers(command) => {
            let reach = Reach::new(server)?;
            match command {
                WorkersCommand::List => survey::workers(&reach, format),
                WorkersCommand::Describe { worker } => survey::worker(&reach, worker, format),
                WorkersCommand::Drain { worker, deadline } => {
                    let deadline = deadline.map(|span| span.0);
                    operate::drain(&reach, &operate::worker(worker), deadline, format)
                }
                WorkersCommand::Cordon { worker } => {
                    operate::cordon(&reach, &operate::worker(worker), format)
                }
                WorkersCommand::Uncordon { worker } => {
                    operate::uncordon(&reach, &operate::worker(worker), format)
                }
                WorkersCommand::Evict { worker } => operate::evict(&reach, worker, format),
            }
        }
        Command::Drain(args) => operate::drain_scope(&Reach::new(server)?, args, format),
        Command::Hold(args) => operate::hold(&Reach::new(server)?, args, format),
        Command::Release(args) => operate::release(&Reach::new(server)?, args, format),
        Command::Dead(command) => {
            let reach = Reach::new(server)?;
            match command {
                DeadCommand::List { filter, by, limit } => {
                    dead::list(&reach, filter, by, limit, format)
                }
                DeadCommand::Show { id } => dead::show(&reach, id, format),
                DeadCommand::Requeue(target) => dead::requeue(&reach, target, format),
                DeadCommand::Discard(target) => dead::discard(&reach, target, format),
            }
        }
        Command::Pools(PoolsCommand::List) => survey::pools(&Reach::new(server)?, format),
        Command::Pools(PoolsCommand::Set { pool, policy }) => {
            operate::set_policy(&Reach::new(server)?, &pool, policy.0, format)
        }
        Command::Completions { shell } => paper::completions(shell),
        Command::Man { dir } => paper::manual(&dir),
    }
}

/// Does what the demo started this process for.
pub(crate) fn run_staff(staff: Staff) -> Result<Exit, Report> {
    match staff {
        Staff::DemoServer => demo::server(),
        Staff::DemoWorker(args) => demo::worker(&args),
    }
}

/// Makes the runtime of a command: one thread, beside those of the SDK or the server.
pub(crate) fn runtime() -> Result<Runtime, Report> {
    Builder::new_current_thread().enable_all().build().map_err(|error| {
        Report::environment(
            format!("the runtime cannot start: {error}"),
            "free file descriptors or memory and run the command again",
        )
    })
}
