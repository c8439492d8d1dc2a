//! The longer texts of the help: examples, and what they need.

pub(super) const EXIT_CODES: &str = "\
Each command says in brackets whether it reads, writes or destroys.

Examples:
  slip demo                                       see it work and check itself
  slip dev                                        a server on this machine
  slip worker --type greet --exec 'tr a-z A-Z'    any program as a worker
  slip submit greet '\"ada\"' --wait                one task and its result

Exit codes:
  0 done               4 denied, or not the expected server    9 refused for now, try again
  1 task or check failed   5 unreachable                     130 second interrupt
  2 usage or configuration 6 timed out, not done
  3 not found              8 conflict";

pub(super) const DEMO_EXAMPLES: &str = "\
Examples:
  slip demo
  slip demo --tasks 1000000 --workers 4 --payload 1KiB
  slip demo -o json | tail -1

Everything is real: one server process, the worker processes and this producer speak QUIC on
loopback. In the second act one worker process is killed with SIGKILL while it holds tasks.
Exits 1 unless every task was settled exactly once with the right result.";

pub(super) const DEV_EXAMPLES: &str = "\
Examples:
  slip dev
  slip dev --listen 127.0.0.1:0

Address and certificate are noted where other commands of this user find them. Tasks live in
memory and go with the server. The first Ctrl-C drains, the second ends at once (exit 130).";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  slip serve
  slip serve --listen 127.0.0.1:5000 -o json

The first line on standard output names address and certificate fingerprint. SIGTERM or Ctrl-C
drains, a second one ends at once (exit 130).";

pub(super) const WORKER_EXAMPLES: &str = "\
Examples:
  slip worker --type shout --exec 'tr a-z A-Z'
  slip worker --type report --exec './report.py --fast' --slots 8 --timeout 30s
  slip worker --type sum --exec \"sh -c 'paste -sd+ | bc'\"
  slip worker --type ping --echo --node box-7";

pub(super) const WORKER_LONG: &str = "\
Examples:
  slip worker --type shout --exec 'tr a-z A-Z'
  slip worker --type report --exec './report.py --fast' --slots 8 --timeout 30s
  slip worker --type sum --exec \"sh -c 'paste -sd+ | bc'\"
  slip worker --type ping --echo --node box-7

The command is split into words as a shell does it, with quotes, and run without a shell. The
payload is its standard input, its standard output is the result. It finds in its environment:
  SLIP_TASK_ID  SLIP_TYPE  SLIP_NAMESPACE  SLIP_QUEUE  SLIP_NODE  SLIP_ATTEMPT
  SLIP_DELIVERY  SLIP_LEASE  SLIP_EPOCH  SLIP_CONTENT_TYPE  SLIP_OWNER_KEY
  SLIP_ORDINAL  SLIP_GENERATION

How it ends decides:
  exit 0             completed
  exit 75            retryable failure; one attempt is spent
  any other exit     terminal failure
  ended by a signal  retryable failure
  over --timeout     retryable failure
  over --output-limit  terminal failure
The end of its standard error is the message of a failure. When a run ends, in whatever way,
its whole process group is ended with it.";

pub(super) const SUBMIT_EXAMPLES: &str = "\
Examples:
  slip submit greet '{\"name\":\"Ada\"}' --wait
  slip submit resize @cat.png --content-type image/png --require box-7
  slip submit report --wait=30s -o json
  seq 1000 | slip submit square - --lines --wait";

pub(super) const SUBMIT_LONG: &str = "\
Examples:
  slip submit greet '{\"name\":\"Ada\"}' --wait
  slip submit resize @cat.png --content-type image/png --require box-7
  slip submit report --wait=30s -o json
  seq 1000 | slip submit square - --lines --wait

Without --wait the task's id is written. With --wait the result itself is written, or with
-o json the outcome; exit 1 says that the task failed, exit 6 that the time was over first.

With --lines each line is one payload and each answer one line of JSON: without --wait in the
order of the input, with --wait in the order in which tasks end; `line` names the line. The
first line that is refused ends the input: everything accepted before it is still answered.";

pub(super) const TASKS_LIST_EXAMPLES: &str = "\
Examples:
  slip tasks list
  slip tasks list --state pending --type greet -o jsonl";

pub(super) const TASKS_GET_EXAMPLES: &str = "\
Examples:
  slip tasks get task_06f5k2p3q4r5s6t7v8w9x0y1z2
  slip tasks get task_06f5k2p3q4r5s6t7v8w9x0y1z2 -o json

A task that waits shows the reason: NoWorker, NoWorkerOnNode, AllFull, AllDraining, Held, NotDue.";

pub(super) const TASKS_RESULT_EXAMPLES: &str = "\
Examples:
  slip tasks result task_06f5k2p3q4r5s6t7v8w9x0y1z2 > cat-small.png
  slip tasks result task_06f5k2p3q4r5s6t7v8w9x0y1z2 --wait=30s -o json";

pub(super) const WORKERS_LIST_EXAMPLES: &str = "\
Examples:
  slip workers list
  slip workers list -o json";

pub(super) const WORKERS_DRAIN_EXAMPLES: &str = "\
Examples:
  slip workers drain 19";

pub(super) const WORKERS_CORDON_EXAMPLES: &str = "\
Examples:
  slip workers cordon 19
  slip workers uncordon 19

When the command returns nothing more is sent to the worker.";

pub(super) const TASKS_CANCEL_EXAMPLES: &str = "\
Examples:
  slip tasks cancel task_06f5k2p3q4r5s6t7v8w9x0y1z2 --reason 'order withdrawn' --grace 30s
  slip tasks cancel --owner run-7
  slip tasks cancel --owner run-7 --below-generation 3 --supersede

A task that no worker has accepted is cancelled at once. Else its handler is told and may finish
within the grace.";

pub(super) const TASKS_SIGNAL_EXAMPLES: &str = "\
Examples:
  slip tasks signal task_06f5k2p3q4r5s6t7v8w9x0y1z2 reload '{\"level\":3}'";

pub(super) const DRAIN_EXAMPLES: &str = "\
Examples:
  slip drain --node box-7 --deadline 10m
  slip drain --pool pay/default/charge
  slip drain --pool pay/default/charge --undo

When the command returns nothing more of the scope is sent to a worker.";

pub(super) const HOLD_EXAMPLES: &str = "\
Examples:
  slip hold pool pay/default/charge
  slip hold owner run-7 --namespace pay
  slip release pool pay/default/charge
  slip release                                    what is held

Tasks that run go on; the others wait until they are released.";

pub(super) const DEAD_LIST_EXAMPLES: &str = "\
Examples:
  slip dead list --type charge
  slip dead list --by fingerprint
  slip dead list --alike 6f8b2c1d00ffeeaa -o jsonl";

pub(super) const DEAD_REQUEUE_EXAMPLES: &str = "\
Examples:
  slip dead requeue task_06f5k2p3q4r5s6t7v8w9x0y1z2
  slip dead requeue --alike 6f8b2c1d00ffeeaa
  slip dead discard --namespace test --all";

pub(super) const DEAD_SHOW_EXAMPLES: &str = "\
Examples:
  slip dead show task_06f5k2p3q4r5s6t7v8w9x0y1z2";

pub(super) const TASKS_RUN_NOW_EXAMPLES: &str = "\
Examples:
  slip tasks run-now task_06f5k2p3q4r5s6t7v8w9x0y1z2";

pub(super) const WORKERS_DESCRIBE_EXAMPLES: &str = "\
Examples:
  slip workers describe 19";

pub(super) const WORKERS_EVICT_EXAMPLES: &str = "\
Examples:
  slip workers evict 19

The worker may come back at once, as another; drain its node or build to keep it out.";

pub(super) const POOLS_LIST_EXAMPLES: &str = "\
Examples:
  slip pools list
  slip pools list -o jsonl";

pub(super) const POOLS_SET_EXAMPLES: &str = "\
Examples:
  slip pools set default/default/resize --policy least_loaded
  slip pools set default/default/resize --policy default";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  slip completions bash > /etc/bash_completion.d/slip
  slip completions fish > ~/.config/fish/completions/slip.fish";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  slip man ~/.local/share/man/man1";
