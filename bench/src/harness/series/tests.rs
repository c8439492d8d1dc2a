use super::{Series, Spread, interleave};

#[test]
fn the_median_is_of_the_values_in_order() {
    let spread = Spread::of(&[3.0, 900.0, 1.0, 2.0, 1_234_567.0]);
    assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 1_234_567.0));
    assert_eq!(spread.to_string(), "3.0 (1.0–1,234,567)");
}

#[test]
fn series_take_turns_and_the_first_round_is_dropped() {
    let order = std::cell::RefCell::new(String::new());
    let series = |name: char| {
        let order = &order;
        let mut next = 100.0;
        Series::new(name, move || {
            order.borrow_mut().push(name);
            next -= 1.0;
            next
        })
    };
    let lines = interleave(vec![series('a'), series('b')], 3);
    assert_eq!(*order.borrow(), "abababab");
    assert_eq!(lines[0].id, "a");
    assert_eq!((lines[1].spread.min, lines[1].spread.max), (96.0, 98.0));
}
