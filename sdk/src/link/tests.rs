use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_burst_costs_one_wake_up() {
    let queue = Queue::new(Count::default());
    for n in 0..100 {
        queue.push(n).unwrap();
    }
    queue.push_all(&mut vec![100, 101]);
    assert_eq!(queue.waker().0.load(Ordering::Relaxed), 1);
    let mut batch = Vec::new();
    assert!(queue.take(&mut batch));
    assert_eq!(batch, (0..102).collect::<Vec<_>>());
    batch.clear();
    queue.push_all(&mut vec![7, 8]);
    assert_eq!(queue.waker().0.load(Ordering::Relaxed), 2);
    assert!(queue.take(&mut batch));
    assert_eq!(batch, [7, 8]);
}

#[test]
fn a_closed_queue_gives_items_back_and_still_hands_out_what_it_has() {
    let queue = Queue::new(Count::default());
    queue.push(1).unwrap();
    queue.close();
    assert_eq!(queue.push(2), Err(2));
    let mut batch = Vec::new();
    assert!(queue.take(&mut batch));
    assert_eq!(batch, [1]);
    batch.clear();
    assert!(!queue.take(&mut batch));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_item_is_left_behind_between_look_and_wait() {
    const EACH: usize = 20_000;
    let queue = Outbox::<usize>::new(Notify::new());
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || (0..EACH).for_each(|n| queue.push(n).unwrap()))
        })
        .collect();
    let mut batch = Vec::new();
    let mut got = 0;
    while got < 3 * EACH && queue.recv(&mut batch).await {
        got += batch.len();
        batch.clear();
    }
    assert_eq!(got, 3 * EACH);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
}
