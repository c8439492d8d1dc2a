use super::Wishes;

fn parse(line: &str) -> Result<Wishes, String> {
    Wishes::parse(line.split_whitespace().map(str::to_owned))
}

#[test]
fn wishes_are_read_and_unknown_ones_refused() {
    assert_eq!(parse("--bench"), Ok(Wishes::default()));
    let wishes = parse("-o json select --quick --bench").unwrap();
    assert!(wishes.json && wishes.quick);
    assert!(wishes.want("a/select/b") && !wishes.want("publish"));
    assert!(parse("-o yaml").is_err());
    assert!(parse("-o").is_err());
    assert!(parse("--fast").is_err());
}
