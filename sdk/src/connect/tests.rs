use super::*;

fn with(address: Option<&str>, fingerprint: Option<&str>) -> Result<ConnectOptions, ConfigError> {
    ConnectOptions::from_variables(|name| {
        let value = if name == ENV_ADDRESS { address } else { fingerprint };
        value.map(str::to_owned)
    })
}

#[test]
fn both_variables_name_a_server() {
    let print = "0f".repeat(32);
    let options = with(Some("box:4777"), Some(&print)).unwrap();
    let (address, fingerprint) = options.target.resolve().unwrap();
    assert_eq!((address.as_str(), fingerprint.to_string()), ("box:4777", print));
}

#[test]
fn half_a_configuration_names_the_missing_half() {
    let error = with(Some("box:4777"), None).unwrap_err();
    assert!(error.to_string().contains("SLIP_FINGERPRINT is not"));
    let error = with(None, Some("00")).unwrap_err();
    assert!(error.to_string().contains("SLIP_ADDRESS is not"));
    let error = with(Some("box:4777"), Some("00")).unwrap_err();
    assert!(matches!(error, ConfigError::Fingerprint { place: "SLIP_FINGERPRINT", .. }));
}

#[test]
fn lanes_stay_within_the_limit() {
    let options = ConnectOptions::dev();
    assert_eq!(options.clone().lanes(0).lanes, 1);
    assert_eq!(options.lanes(9).lanes, LANES_MAX);
}
