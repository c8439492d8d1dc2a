use super::date;

#[test]
fn a_day_is_written_in_order() {
    assert_eq!(date(0), "1970-01-01");
    assert_eq!(date(951_782_400), "2000-02-29");
    assert_eq!(date(1_709_164_799), "2024-02-28");
    assert_eq!(date(1_796_083_200), "2026-12-01");
    assert_eq!(date(4_107_542_399), "2100-02-28");
    assert_eq!(date(4_107_542_400), "2100-03-01");
}
