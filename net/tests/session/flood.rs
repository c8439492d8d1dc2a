//! More large payloads at once than may be under way.

use bytes::Bytes;
use slipswitch_net::proto::limits;
use slipswitch_net::proto::messages as m;

use crate::bed::{Bed, outcomes, submit, work};

/// More than either side may have under way towards the other.
const TASKS: u64 = 2 * limits::PAYLOADS_UNDER_WAY_MAX as u64;

#[test]
fn a_flood_of_large_payloads_is_carried_in_both_directions() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], u32::MAX >> 16);
    let large: Bytes = vec![7; limits::INLINE_PAYLOAD_MAX + 1].into();
    for req in 1..=TASKS {
        producer.client.submit(submit(req, "echo", true), large.clone());
    }
    // Submits one way, then offers, results and outcomes, each with its payload beside it.
    producer.run().expect("in order");
    let mut done = 0;
    while done < TASKS {
        let before = done;
        // A turn of the engine places so many, then it posts the rest.
        bed.engine.advance(bed.now);
        done += work(&mut worker) as u64;
        assert!(done > before, "{done} of {TASKS}");
    }
    producer.run().expect("in order");
    let outcomes = outcomes(&mut producer);
    let mut reqs: Vec<u64> = outcomes.iter().map(|(outcome, _)| outcome.req).collect();
    reqs.sort_unstable();
    assert_eq!(reqs, (1..=TASKS).collect::<Vec<_>>());
    for (outcome, output) in outcomes {
        assert_eq!(outcome.state, m::State::Completed as u32);
        assert_eq!(output, large);
    }
}
