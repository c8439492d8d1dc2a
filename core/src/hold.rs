//! Holds: tasks that nobody places until they are released. Those that run go on.
//!
//! A held pool or namespace stands among the drains, since nothing of it is placed by the same
//! means. The tasks of a held owner are put aside one by one, and each that would stand in line
//! looks whether its owner is held once it does: either that look finds the hold, or the hold finds
//! the task in line.

use bytes::Bytes;

use crate::admission::{Principal, Role};
use crate::cell::CellFamily;
use crate::drain::{DrainMode, DrainScope, Drained, Step};
use crate::engine::{AdminError, Engine};
use crate::name::{Namespace, PoolKey};
use crate::outcome::Notify;
use crate::sync::StdArc;
use crate::time::Instant;

/// Which tasks are held together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// Those of an owner, those to come included.
    Owner(Namespace, Bytes),
    /// Those of a pool.
    Pool(PoolKey),
    /// Those of a namespace.
    Namespace(Namespace),
}

impl Hold {
    /// The namespace that it is in.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        match self {
            Self::Owner(namespace, _) | Self::Namespace(namespace) => namespace,
            Self::Pool(key) => &key.namespace,
        }
    }

    fn scope(&self) -> Option<DrainScope> {
        match self {
            Self::Owner(..) => None,
            Self::Pool(key) => Some(DrainScope::Pool(key.clone())),
            Self::Namespace(namespace) => Some(DrainScope::Namespace(namespace.clone())),
        }
    }
}

/// A hold as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldStatus {
    /// What is held.
    pub hold: Hold,
    /// Since when.
    pub since: Instant,
    /// How many tasks of the owner it keeps from running; not counted for pools and namespaces.
    pub tasks: Option<u64>,
}

impl<F: CellFamily> Engine<F> {
    /// Holds tasks. Holding twice changes nothing.
    ///
    /// # Consistency
    ///
    /// For an owner nothing more is placed when this returns. Otherwise wait for
    /// [`Drained::is_done`]; `waiter` is notified when it is.
    ///
    /// # Errors
    ///
    /// The namespace is not the principal's to see, or the principal is no operator there.
    pub fn hold(
        &self,
        principal: &Principal,
        hold: &Hold,
        waiter: StdArc<dyn Notify>,
        now: Instant,
    ) -> Result<Drained, AdminError> {
        may_hold(principal, hold)?;
        match (hold, hold.scope()) {
            (Hold::Owner(namespace, owner_key), _) => {
                self.hold_owner(namespace, owner_key, now);
                Ok(Drained::of_nothing(waiter))
            }
            (_, Some(scope)) => Ok(self.shut_scope(scope, DrainMode::Hold, None, waiter, now)),
            (_, None) => Err(AdminError::NotFound),
        }
    }

    /// Lifts a hold of exactly that; others that cover the same tasks stay.
    ///
    /// # Errors
    ///
    /// There is no such hold, or as for [`Engine::hold`].
    pub fn release_hold(
        &self,
        principal: &Principal,
        hold: &Hold,
        now: Instant,
    ) -> Result<(), AdminError> {
        may_hold(principal, hold)?;
        let found = match (hold, hold.scope()) {
            (Hold::Owner(namespace, owner_key), _) => self.release_owner(namespace, owner_key),
            (_, Some(scope)) => self.step(Step::Lift(scope, DrainMode::Hold), now).serial > 0,
            (_, None) => false,
        };
        if found { Ok(()) } else { Err(AdminError::NotFound) }
    }

    /// The holds that the principal may see.
    #[must_use]
    pub fn holds(&self, principal: &Principal) -> Vec<HoldStatus> {
        let mut holds = self.held_owners();
        for status in self.registry.drains() {
            let hold = match (status.mode, status.scope) {
                (DrainMode::Hold, DrainScope::Pool(key)) => Hold::Pool(key),
                (DrainMode::Hold, DrainScope::Namespace(namespace)) => Hold::Namespace(namespace),
                _ => continue,
            };
            holds.push(HoldStatus { hold, since: status.since, tasks: None });
        }
        holds.retain(|status| principal.may_see(status.hold.namespace()));
        holds
    }
}

fn may_hold(principal: &Principal, hold: &Hold) -> Result<(), AdminError> {
    let namespace = hold.namespace();
    if !principal.may_see(namespace) {
        return Err(AdminError::NotFound);
    }
    if principal.may(Role::Operator, namespace) {
        Ok(())
    } else {
        Err(AdminError::PermissionDenied)
    }
}
