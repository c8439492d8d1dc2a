//! Models of the hand-offs between threads.
