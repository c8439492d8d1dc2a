use std::sync::{Barrier, mpsc};

use super::*;

#[test]
fn blocking_in_parallel() {
    const SLOTS: usize = 16;
    let pool = BlockingPool::new(SLOTS);
    let meet = Arc::new(Barrier::new(SLOTS));
    let (done, all) = mpsc::channel();
    for _ in 0..SLOTS {
        let (meet, done) = (Arc::clone(&meet), done.clone());
        pool.run(move || {
            // Passed only when every slot is inside its job at the same time.
            meet.wait();
            done.send(()).unwrap();
        })
        .unwrap();
    }
    for _ in 0..SLOTS {
        all.recv().unwrap();
    }
}

#[test]
fn jobs_above_the_limit_wait_for_a_thread_and_all_run() {
    let pool = BlockingPool::new(2);
    let (done, all) = mpsc::channel();
    for n in 0..100 {
        let done = done.clone();
        pool.run(move || done.send((n, thread::current().id())).unwrap()).unwrap();
    }
    drop(done);
    let ran: Vec<_> = all.into_iter().collect();
    assert_eq!(ran.len(), 100);
    let threads: std::collections::HashSet<_> = ran.iter().map(|(_, id)| *id).collect();
    assert!(threads.len() <= 2);
}

#[test]
fn closing_ends_idle_threads_after_the_jobs_that_wait() {
    let pool = BlockingPool::new(1);
    let (go, gate) = mpsc::channel::<()>();
    let (done, all) = mpsc::channel();
    let first = done.clone();
    pool.run(move || {
        gate.recv().unwrap();
        first.send(1).unwrap();
    })
    .unwrap();
    pool.run(move || done.send(2).unwrap()).unwrap();
    pool.close();
    go.send(()).unwrap();
    assert_eq!(all.iter().collect::<Vec<_>>(), [1, 2], "the channel closes when both jobs ran");
    while pool.0.state.lock().threads > 0 {
        thread::yield_now();
    }
}
