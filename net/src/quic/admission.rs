//! What becomes of a first packet: bounds on handshakes in progress.
//!
//! Judged before any cryptography: a flood costs a lookup. Sessions that are already up are not
//! counted here and do not suffer from it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::limits;

/// Handshakes in progress, in all and by address prefix. Counted by references to tokens: a
/// [`Ticket`] gives its place back wherever it is dropped.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    all: Arc<()>,
    prefixes: BTreeMap<Prefix, Arc<()>>,
}

/// A place among the handshakes in progress.
#[derive(Debug)]
pub(super) struct Ticket {
    _all: Arc<()>,
    _prefix: Option<Arc<()>>,
}

/// What to do with a first packet.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Shake hands; the ticket is held meanwhile.
    Accept(Ticket),
    /// Let the address prove itself first.
    Retry,
    /// Say no.
    Refuse,
    /// Say nothing.
    Ignore,
}

/// The part of an address that one subscriber usually holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Prefix {
    V4([u8; 3]),
    V6([u8; 7]),
}

impl Prefix {
    /// Loopback has no prefix: a machine does not flood itself.
    fn of(addr: IpAddr) -> Option<Self> {
        let addr = addr.to_canonical();
        if addr.is_loopback() {
            return None;
        }
        Some(match addr {
            IpAddr::V4(addr) => {
                let [a, b, c, _] = addr.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(addr) => {
                let [a, b, c, d, e, f, g, ..] = addr.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        })
    }
}

impl Handshakes {
    /// Judges a first packet from `addr`; `validated` says that the address has proved itself.
    pub(super) fn judge(&mut self, addr: IpAddr, validated: bool) -> Verdict {
        let in_progress = held(&self.all);
        if in_progress >= limits::HANDSHAKES_IGNORE {
            return Verdict::Ignore;
        }
        if in_progress >= limits::HANDSHAKES_REFUSE {
            return Verdict::Refuse;
        }
        if in_progress >= limits::HANDSHAKES_RETRY && !validated {
            return Verdict::Retry;
        }
        let Some(prefix) = Prefix::of(addr) else {
            return Verdict::Accept(Ticket { _all: Arc::clone(&self.all), _prefix: None });
        };
        // A prefix is kept while it has handshakes in progress, and those are bounded.
        if self.prefixes.len() >= limits::HANDSHAKES_IGNORE {
            self.prefixes.retain(|_, token| held(token) > 0);
        }
        let token = self.prefixes.entry(prefix).or_default();
        if held(token) >= limits::HANDSHAKES_PER_PREFIX {
            return Verdict::Refuse;
        }
        let prefix = Some(Arc::clone(token));
        Verdict::Accept(Ticket { _all: Arc::clone(&self.all), _prefix: prefix })
    }
}

fn held(token: &Arc<()>) -> usize {
    Arc::strong_count(token).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn accept(handshakes: &mut Handshakes, addr: IpAddr) -> Ticket {
        match handshakes.judge(addr, true) {
            Verdict::Accept(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn crowd_is_validated_then_refused_then_ignored() {
        let mut handshakes = Handshakes::default();
        let mut tickets = Vec::new();
        for _ in 0..limits::HANDSHAKES_RETRY {
            assert!(matches!(handshakes.judge(HERE, false), Verdict::Accept(_)));
            tickets.push(accept(&mut handshakes, HERE));
        }
        assert!(matches!(handshakes.judge(HERE, false), Verdict::Retry));
        while tickets.len() < limits::HANDSHAKES_REFUSE {
            tickets.push(accept(&mut handshakes, HERE));
        }
        assert!(matches!(handshakes.judge(HERE, true), Verdict::Refuse));
        // Only handshakes accepted elsewhere can raise the count further.
        tickets.extend(
            (tickets.len()..limits::HANDSHAKES_IGNORE)
                .map(|_| Ticket { _all: Arc::clone(&handshakes.all), _prefix: None }),
        );
        assert!(matches!(handshakes.judge(HERE, true), Verdict::Ignore));
        tickets.clear();
        assert!(matches!(handshakes.judge(HERE, false), Verdict::Accept(_)));
    }

    #[test]
    fn one_prefix_cannot_take_all_places() {
        let mut handshakes = Handshakes::default();
        let crowd = |host| IpAddr::V4(Ipv4Addr::new(198, 51, 100, host));
        let tickets: Vec<_> = (0..limits::HANDSHAKES_PER_PREFIX)
            .map(|host| accept(&mut handshakes, crowd(host as u8)))
            .collect();
        assert!(matches!(handshakes.judge(crowd(250), true), Verdict::Refuse));
        let other = IpAddr::V4(Ipv4Addr::new(198, 51, 101, 1));
        assert!(matches!(handshakes.judge(other, true), Verdict::Accept(_)));
        drop(tickets);
        assert!(matches!(handshakes.judge(crowd(250), true), Verdict::Accept(_)));
    }

    #[test]
    fn addresses_of_one_subscriber_share_a_prefix() {
        let v6 = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, last, 0, 0, 0, 1));
        assert_eq!(Prefix::of(v6(0x00ff)), Prefix::of(v6(0x0001)));
        assert_ne!(Prefix::of(v6(0x01ff)), Prefix::of(v6(0x00ff)));
        let mapped = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped());
        assert_eq!(Prefix::of(mapped), Prefix::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9))));
        assert_eq!(Prefix::of(IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())), None);
    }

    #[test]
    fn prefixes_without_handshakes_are_forgotten() {
        let mut handshakes = Handshakes::default();
        for n in 0..3 * limits::HANDSHAKES_IGNORE as u32 {
            drop(accept(&mut handshakes, IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + n * 256))));
        }
        assert!(handshakes.prefixes.len() <= limits::HANDSHAKES_IGNORE);
    }
}
