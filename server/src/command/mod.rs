//! The commands: each turns its arguments into work and its failures into reports.

mod dev;
pub(crate) mod failing;
mod paper;
mod reach;
pub(crate) mod serve;
mod submit;
mod survey;
mod task;
mod view;
mod worker;

use tokio::runtime::{Builder, Runtime};

use crate::cli::{Cli, Command, PoolsCommand, Staff, TasksCommand, WorkersCommand};
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
        Command::Submit(args) => submit::run(server, args, format),
        Command::Tasks(command) => {
            let reach = Reach::new(server)?;
            match command {
                TasksCommand::List(args) => task::list(&reach, args, format),
                TasksCommand::Get { id } => task::show(&reach, id, format),
                TasksCommand::Result { id, wait } => {
                    task::result(&reach, id, wait.map(|span| span.0), format)
                }
            }
        }
        Command::Workers(command) => {
            let reach = Reach::new(server)?;
            match command {
                WorkersCommand::List => survey::workers(&reach, format),
                WorkersCommand::Drain { worker } => survey::drain(&reach, worker, format),
            }
        }
        Command::Pools(PoolsCommand::List) => survey::pools(&Reach::new(server)?, format),
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
