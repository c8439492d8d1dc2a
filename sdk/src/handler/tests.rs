use serde::{Deserialize, Serialize};
use slipswitch_core::{Lease, PoolKey, TaskId};
use tokio::sync::mpsc;

use super::*;
use crate::context::{CancelReason, Facts, Report};

#[derive(Debug, Serialize, Deserialize)]
struct Double {
    number: i64,
}

impl Activity for Double {
    const TYPE: &'static str = "double";
    type Output = i64;
}

struct Sink(mpsc::UnboundedSender<Answer>);

impl Report for Sink {
    fn answer(&self, _delivery: Arc<Delivery>, answer: Answer) {
        self.0.send(answer).unwrap();
    }

    fn progress(&self, _lease: Lease, _progress: Bytes) {}
}

struct Bed {
    sink: Arc<Sink>,
    answers: mpsc::UnboundedReceiver<Answer>,
    on: Executor,
}

impl Bed {
    fn new() -> Self {
        let (send, answers) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Handle::current();
        let on = Executor { runtime, blocking: BlockingPool::new(4) };
        Self { sink: Arc::new(Sink(send)), answers, on }
    }

    fn start(&self, handler: &impl Handle<()>, input: &'static [u8]) -> Arc<Delivery> {
        let facts = Facts {
            task_id: TaskId::from_bytes([1; 16]),
            lease: Lease { id: 1, epoch: 1 },
            pool: PoolKey::new("default", "", "double").unwrap(),
            attempt: 1,
            deliveries: 1,
            owner_key: Bytes::new(),
            ordinal: 0,
            generation: 0,
            content_type: String::new(),
            headers: Vec::new(),
            idempotency_key: Bytes::new(),
            last_progress: None,
            start_to_close: None,
        };
        let delivery = Delivery::new(facts, Arc::clone(&self.sink) as Arc<dyn Report>);
        let cx = Context::new(Arc::clone(&delivery), Arc::new(()));
        let done = Done::new(Arc::clone(&delivery));
        handler.start(Bytes::from_static(input), cx, done, &self.on);
        delivery
    }

    async fn answer(&mut self) -> Answer {
        self.answers.recv().await.unwrap()
    }
}

async fn double(input: Double, _cx: Context) -> Result<i64, Failure> {
    let overflow = || Failure::terminal("too large").code("overflow");
    input.number.checked_mul(2).ok_or_else(overflow)
}

#[tokio::test]
async fn a_typed_handler_answers_with_json() {
    let mut bed = Bed::new();
    bed.start(&Typed::<Double, _>::new(double), br#"{"number":21}"#);
    let payload = bed.answer().await.unwrap();
    assert_eq!(payload.decode::<i64>().unwrap(), 42);
    assert_eq!(payload.content_type(), "application/json");
}

#[tokio::test]
async fn undecodable_input_is_terminal_and_the_handler_never_sees_it() {
    let mut bed = Bed::new();
    for input in [&b""[..], b"{", b"{\"number\":\"x\"}", b"\xff\xff"] {
        bed.start(&Typed::<Double, _>::new(double), input);
        let failure = bed.answer().await.unwrap_err();
        assert_eq!(failure.class(), FailureClass::Terminal);
        assert_eq!(failure.code_text(), CODE_UNDECODABLE);
    }
    let blocking = Blocking::<Double, _>::new(|_: Double, _: Context| -> Result<i64, Failure> {
        unreachable!("undecodable input reached the handler")
    });
    bed.start(&blocking, b"[]");
    assert_eq!(bed.answer().await.unwrap_err().code_text(), CODE_UNDECODABLE);
}

// bug: B32
#[tokio::test]
async fn handler_panic_returns_credit() {
    let mut bed = Bed::new();
    let at_once = Typed::<Double, _>::new(|_: Double, _: Context| {
        panic!("before the future exists");
        #[expect(unreachable_code, reason = "gives the future its type")]
        async {
            Ok(0)
        }
    });
    bed.start(&at_once, br#"{"number":1}"#);
    let failure = bed.answer().await.unwrap_err();
    assert_eq!((failure.class(), failure.code_text()), (FailureClass::Retryable, CODE_PANIC));
    assert!(failure.message().ends_with("before the future exists"));

    let later = Typed::<Double, _>::new(async |input: Double, _: Context| {
        tokio::task::yield_now().await;
        if input.number == 1 { panic!("number {}", input.number) } else { Ok(0) }
    });
    bed.start(&later, br#"{"number":1}"#);
    let failure = bed.answer().await.unwrap_err();
    assert_eq!((failure.class(), failure.code_text()), (FailureClass::Retryable, CODE_PANIC));
    assert!(failure.message().ends_with("number 1"));

    let blocking = Blocking::<Double, _>::new(|_: Double, _: Context| panic!("blocked"));
    for _ in 0..8 {
        bed.start(&blocking, br#"{"number":1}"#);
        assert_eq!(bed.answer().await.unwrap_err().code_text(), CODE_PANIC);
    }
}

#[tokio::test]
async fn output_that_cannot_be_encoded_is_terminal() {
    #[derive(Serialize, Deserialize)]
    struct Table;
    impl Activity for Table {
        const TYPE: &'static str = "table";
        type Output = std::collections::BTreeMap<(u8, u8), u8>;
    }
    let mut bed = Bed::new();
    let handler = Typed::<Table, _>::new(async |_: Table, _: Context| Ok([((1, 2), 3)].into()));
    bed.start(&handler, b"null");
    let failure = bed.answer().await.unwrap_err();
    assert_eq!((failure.class(), failure.code_text()), (FailureClass::Terminal, CODE_UNENCODABLE));
}

#[tokio::test]
async fn raw_handlers_see_and_give_bytes() {
    let mut bed = Bed::new();
    let echo = Raw(Arc::new(async |input: Bytes, _: Context| Ok(input)));
    bed.start(&echo, b"\x00\xff not json");
    assert_eq!(bed.answer().await.unwrap().bytes().as_ref(), b"\x00\xff not json");
}

#[tokio::test]
async fn a_cancelled_handler_hears_the_first_reason_once_and_for_all() {
    let mut bed = Bed::new();
    let handler = Raw(Arc::new(async |_: Bytes, cx: Context| {
        let why = cx.cancelled().await;
        assert_eq!(cx.cancelled().await, why);
        Err::<Bytes, _>(Failure::cancelled(why))
    }));
    let delivery = bed.start(&handler, b"");
    tokio::task::yield_now().await;
    delivery.cancel(CancelReason::Requested);
    delivery.cancel(CancelReason::Leaving);
    let failure = bed.answer().await.unwrap_err();
    assert_eq!(failure, Failure::cancelled(CancelReason::Requested));
    let early = bed.start(&handler, b"");
    early.cancel(CancelReason::LeaseLost);
    let failure = bed.answer().await.unwrap_err();
    assert_eq!(failure, Failure::cancelled(CancelReason::LeaseLost));
}

#[test]
fn a_handler_dropped_with_its_runtime_is_an_infrastructure_loss() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut bed = runtime.block_on(async {
        let bed = Bed::new();
        let forever = Raw(Arc::new(async |_: Bytes, _: Context| {
            std::future::pending::<()>().await;
            Ok(Bytes::new())
        }));
        bed.start(&forever, b"");
        tokio::task::yield_now().await;
        bed
    });
    drop(runtime);
    let failure = bed.answers.try_recv().unwrap().unwrap_err();
    assert_eq!(
        (failure.class(), failure.code_text()),
        (FailureClass::Infrastructure, CODE_DROPPED)
    );
}
