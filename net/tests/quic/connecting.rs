//! Finding a server, and not finding one.

use std::net::UdpSocket;
use std::time::Duration;

use slipswitch_net::quic::{
    BindError, ConnectError, Dialer, Fingerprint, IoThreads, ListenConfig, Listener,
    WrongCertificate,
};

use crate::echo::Session;
use crate::server::{DEADLINE, Server, any_port, identity, on_client};

fn connect_error(
    server: std::net::SocketAddr,
    pin: Fingerprint,
    deadline: Duration,
) -> ConnectError {
    on_client(async {
        let dialer = Dialer::bind(server).unwrap();
        dialer.connect(server, pin, deadline).await.map(|_| ()).unwrap_err()
    })
}

#[test]
fn wrong_certificate_names_both_fingerprints() {
    let server = Server::start(1, || Session::new(true));
    let expected = Fingerprint::from_bytes([7; 32]);
    let error = connect_error(server.addr(), expected, DEADLINE);
    let ConnectError::WrongCertificate(WrongCertificate { expected: pinned, got }) = error else {
        panic!("{error:?}");
    };
    assert_eq!((pinned, got), (expected, server.fingerprint));
}

#[test]
fn port_where_nothing_listens_is_unreachable() {
    let gone = {
        let socket = UdpSocket::bind(any_port()).unwrap();
        socket.local_addr().unwrap()
    };
    let error = connect_error(gone, Fingerprint::from_bytes([0; 32]), DEADLINE);
    assert!(matches!(error, ConnectError::Unreachable { addr, .. } if addr == gone), "{error:?}");
}

#[test]
fn silence_times_out() {
    let silent = UdpSocket::bind(any_port()).unwrap();
    let addr = silent.local_addr().unwrap();
    let deadline = Duration::from_millis(100);
    let error = connect_error(addr, Fingerprint::from_bytes([0; 32]), deadline);
    assert!(
        matches!(error, ConnectError::TimedOut { after, .. } if after == deadline),
        "{error:?}"
    );
}

#[test]
fn port_in_use_is_named() {
    let taken = UdpSocket::bind(any_port()).unwrap();
    let addr = taken.local_addr().unwrap();
    let io = IoThreads::start(1).unwrap();
    let error = Listener::bind(&ListenConfig::new(addr, identity()), io.into()).unwrap_err();
    assert!(matches!(error, BindError::PortInUse { .. }), "{error:?}");
}

#[test]
fn key_of_another_certificate_is_refused() {
    let io = IoThreads::start(1).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let other = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["slipswitch".to_string()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mixed =
        slipswitch_net::quic::Identity::from_der(certificate.der().to_vec(), other.serialize_der());
    let error = Listener::bind(&ListenConfig::new(any_port(), mixed), io.into()).unwrap_err();
    assert!(matches!(error, BindError::InvalidIdentity(_)), "{error:?}");
}
