//! Both sides of a session as a pair, in memory, on a clock in the test's hand.

mod bed;
mod flood;
mod life;
mod limits;
mod liveness;
mod loss;
mod order;
mod work;
