use std::rc::Rc;
use std::sync::mpsc;

use super::*;

#[test]
fn futures_that_cannot_be_sent_run_where_they_were_placed() {
    let io = IoThreads::start(2).unwrap();
    let (names, seen) = mpsc::channel();
    for thread in [0, 1, 0] {
        let names = names.clone();
        io.spawn_on(thread, move || async move {
            let local = Rc::new(thread);
            tokio::task::yield_now().await;
            names.send((*local, thread::current().name().map(String::from))).unwrap();
        });
    }
    let mut all: Vec<_> = seen.iter().take(3).collect();
    all.sort();
    let name = |thread| (thread, Some(format!("slip-io-{thread}")));
    assert_eq!(all, [name(0), name(0), name(1)]);
}

#[test]
fn panic_spares_the_thread() {
    let io = IoThreads::start(1).unwrap();
    let (done, seen) = mpsc::channel();
    io.spawn_on(0, || async { panic!("planted") });
    #[expect(unreachable_code, reason = "the panic is in the making of the future")]
    io.spawn_on(0, || {
        panic!("planted");
        async {}
    });
    io.spawn_on(0, move || async move { done.send(()).unwrap() });
    assert_eq!(seen.recv(), Ok(()));
}

#[test]
fn seats_go_to_the_thread_with_the_fewest() {
    let io = IoThreads::start(3).unwrap();
    let mut seats: Vec<Seat> = (0..6).map(|_| io.seat()).collect();
    assert_eq!([io.load(0), io.load(1), io.load(2)], [2, 2, 2]);
    seats.retain(|seat| seat.thread() != 1);
    assert_eq!(io.load(1), 0);
    let next = io.seat();
    assert_eq!(next.thread(), 1);
}

#[test]
fn drop_joins_the_threads_and_drops_their_tasks() {
    struct Held(mpsc::Sender<()>);
    impl Drop for Held {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let io = IoThreads::start(2).unwrap();
    let (dropped, seen) = mpsc::channel();
    let (ready, started) = mpsc::channel();
    for thread in 0..2 {
        let (held, ready) = (Held(dropped.clone()), ready.clone());
        io.spawn_on(thread, move || async move {
            let _held = held;
            ready.send(()).unwrap();
            std::future::pending::<()>().await;
        });
    }
    assert_eq!(started.iter().take(2).count(), 2);
    drop(io);
    assert_eq!(seen.try_iter().count(), 2);
}

#[test]
fn last_reference_on_its_own_thread_does_not_wait_for_itself() {
    let io = Arc::new(IoThreads::start(1).unwrap());
    let (done, seen) = mpsc::channel();
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let inner = Arc::clone(&io);
    io.spawn_on(0, move || async move {
        gone.await.unwrap();
        drop(inner);
        done.send(()).unwrap();
    });
    drop(io);
    go.send(()).unwrap();
    assert_eq!(seen.recv(), Ok(()));
}

#[test]
fn quinn_tasks_go_to_the_thread_named() {
    let io = IoThreads::start(2).unwrap();
    let placement = io.placement();
    let (names, seen) = mpsc::channel();
    for thread in [1, 0, 7] {
        let names = names.clone();
        Placement::on(thread, || {
            placement.spawn(Box::pin(async move {
                names.send((thread, thread::current().name().map(String::from))).unwrap();
            }));
        });
    }
    let mut all: Vec<_> = seen.iter().take(3).collect();
    all.sort();
    let on = |asked, got| (asked, Some(format!("slip-io-{got}")));
    assert_eq!(all, [on(0, 0), on(1, 1), on(7, 0)]);
}
