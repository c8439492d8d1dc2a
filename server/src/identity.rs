//! The generated certificate of a server on this machine.

use slipswitch_net::quic::Identity;
use thiserror::Error;

/// No certificate could be generated: a fault of the environment, as when it has no randomness.
#[derive(Debug, Error)]
#[error("no certificate can be generated: {0}")]
pub struct GenerateError(#[from] rcgen::Error);

/// Generates a key and a certificate that signs itself. Clients know it by its fingerprint, and
/// every start has another.
///
/// # Errors
///
/// When the system has no randomness to give.
pub fn generate() -> Result<Identity, GenerateError> {
    let names = vec!["slipswitch".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    Ok(Identity::from_der(made.cert.der().to_vec(), made.signing_key.serialize_der()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_certificate_is_another() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
    }
}
