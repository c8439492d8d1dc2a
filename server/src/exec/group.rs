//! A process group that ends with the run that it was made for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

/// The leaders of the groups that run now.
static LEADERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends every group that runs now; for a process that exits without unwinding.
pub(crate) fn end_all() {
    for leader in LEADERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // ESRCH: the group has ended already.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// The group led by a child that was started with `process_group(0)`.
///
/// Signals go out only while the leader is not reaped: until then its number, and with it the
/// group's, belongs to it. Dropping the value ends the group.
pub(super) struct Group {
    /// `None` once the leader is reaped.
    leader: Option<Pid>,
    /// Readable once the leader has ended, without reaping it. `None` on a kernel that has none.
    ended: Option<AsyncFd<OwnedFd>>,
}

impl Group {
    #[expect(deprecated, reason = "the other way is unsafe; an owned descriptor stays what it is")]
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let ended = leader
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .and_then(|fd| AsyncFd::with_interest(fd, Interest::READABLE).ok());
        LEADERS.lock().unwrap_or_else(PoisonError::into_inner).extend(leader);
        Self { leader, ended }
    }

    /// Waits until the leader has ended. Where the kernel allows it, the leader is not reaped.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again.
    pub(super) async fn exited(&mut self, child: &mut Child) -> io::Result<()> {
        match &self.ended {
            Some(fd) => fd.readable().await.map(|mut ready| ready.retain_ready()),
            None => {
                let reaped = child.wait().await.map(|_| ());
                // The rest of the group is signalled at once: its number is free only when its
                // last member is gone, and if none is left there is nobody to signal.
                self.kill();
                self.forget();
                reaped
            }
        }
    }

    /// Asks every process of the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends every process of the group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The leader was reaped: its number may be another's from now on.
    pub(super) fn forget(&mut self) {
        if let Some(leader) = self.leader.take() {
            let mut leaders = LEADERS.lock().unwrap_or_else(PoisonError::into_inner);
            leaders.retain(|other| *other != leader);
        }
        self.ended = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // ESRCH: the group has ended already.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.forget();
    }
}
