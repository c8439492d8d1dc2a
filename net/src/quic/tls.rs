//! TLS of the QUIC shell: one certificate, pinned by its SHA-256 fingerprint.
//!
//! TLS 1.3 only, ALPN [`ALPN`], the aws-lc-rs provider by name. Nothing is resumed: no tickets, no
//! session store, no early data, so that no connection lives on an identity of yesterday. Keys are
//! never logged, whatever `SSLKEYLOGFILE` says.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use thiserror::Error;
use tokio::sync::watch;

/// The application protocol that both sides must name.
pub const ALPN: &[u8] = b"slipswitch/1";

/// The name that a client sends. The pin decides, not the name.
pub(super) const SERVER_NAME: &str = "slipswitch";

/// The SHA-256 digest of a certificate in DER.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Wraps a digest.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Digests a certificate in DER.
    #[must_use]
    pub fn of_certificate(der: &[u8]) -> Self {
        let digest = ::aws_lc_rs::digest::digest(&::aws_lc_rs::digest::SHA256, der);
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(digest.as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// A text is not a fingerprint: 64 hexadecimal digits were expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a certificate fingerprint: expected 64 hexadecimal digits of a SHA-256 digest")]
pub struct InvalidFingerprint;

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    /// Reads 64 hexadecimal digits; a leading `sha256:` and colons between bytes are allowed.
    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let text = text.trim();
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let mut bytes = [0_u8; 32];
        let mut places = bytes.iter_mut();
        let mut high = None;
        for digit in digits.chars().filter(|&c| c != ':') {
            let value = digit.to_digit(16).and_then(|v| u8::try_from(v).ok());
            let value = value.ok_or(InvalidFingerprint)?;
            match high.take() {
                None => high = Some(value << 4),
                Some(high) => *places.next().ok_or(InvalidFingerprint)? = high | value,
            }
        }
        if high.is_some() || places.next().is_some() {
            return Err(InvalidFingerprint);
        }
        Ok(Self(bytes))
    }
}

/// The server showed another certificate than the pinned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server's certificate has fingerprint {got}, but {expected} was pinned")]
pub struct WrongCertificate {
    /// The pin.
    pub expected: Fingerprint,
    /// What the server showed.
    pub got: Fingerprint,
}

/// A certificate and key cannot serve as identity.
#[derive(Debug, Error)]
#[error("the certificate and its key cannot be used")]
pub struct InvalidIdentity(#[from] rustls::Error);

/// A server's certificate and private key, both in DER.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Takes a certificate in DER and its private key in PKCS #8 DER.
    #[must_use]
    pub fn from_der(certificate: Vec<u8>, key: Vec<u8>) -> Self {
        Self { certificate: certificate.into(), key: PrivatePkcs8KeyDer::from(key).into() }
    }

    /// Returns what clients pin.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_certificate(&self.certificate)
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { certificate: self.certificate.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

/// AES first: it is what the processors of both sides accelerate.
fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::cipher_suite as suite;
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            suite::TLS13_AES_128_GCM_SHA256,
            suite::TLS13_AES_256_GCM_SHA384,
            suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..aws_lc_rs::default_provider()
    })
}

/// Builds the server's side.
pub(super) fn server(
    identity: &Identity,
    alpn: &[u8],
) -> Result<Arc<QuicServerConfig>, InvalidIdentity> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())?;
    config.alpn_protocols = vec![alpn.to_vec()];
    config.ignore_client_order = true;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.max_early_data_size = 0;
    config.key_log = Arc::new(rustls::NoKeyLog);
    let config = QuicServerConfig::try_from(config)
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(Arc::new(config))
}

/// Builds a client's side for one attempt. The receiver holds what the server showed, if that was
/// not what `pin` names: the reason would not survive the way through the transport otherwise.
pub(super) fn client(
    pin: Fingerprint,
    alpn: &[u8],
) -> Result<(Arc<QuicClientConfig>, watch::Receiver<Option<WrongCertificate>>), rustls::Error> {
    let (refused, seen) = watch::channel(None);
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinVerifier { pin, algorithms, refused }))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_early_data = false;
    config.key_log = Arc::new(rustls::NoKeyLog);
    let config = QuicClientConfig::try_from(config)
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok((Arc::new(config), seen))
}

/// Trusts one certificate and still checks that the peer holds its key.
#[derive(Debug)]
struct PinVerifier {
    pin: Fingerprint,
    algorithms: WebPkiSupportedAlgorithms,
    refused: watch::Sender<Option<WrongCertificate>>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let got = Fingerprint::of_certificate(end_entity);
        if got == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        let wrong = WrongCertificate { expected: self.pin, got };
        self.refused.send_replace(Some(wrong));
        Err(CertificateError::Other(OtherError(Arc::new(wrong))).into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls13RequiredForQuic.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_reads_what_it_writes() {
        let print = Fingerprint::of_certificate(b"any bytes");
        let text = print.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse(), Ok(print));
        assert_eq!(format!("sha256:{}", text.to_uppercase()).parse(), Ok(print));
        let colons: Vec<String> = print.0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(colons.join(":").parse(), Ok(print));
    }

    #[test]
    fn fingerprint_is_sha_256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Fingerprint::of_certificate(b"").to_string(), empty);
    }

    #[test]
    fn other_texts_are_no_fingerprints() {
        let good = Fingerprint::of_certificate(b"x").to_string();
        for text in ["", "00", &good[1..], &format!("{good}0"), &format!("{good}00"), "zz"] {
            assert_eq!(text.parse::<Fingerprint>(), Err(InvalidFingerprint), "{text}");
        }
    }
}
