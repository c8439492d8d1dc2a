//! The slipswitch server and the slip command.
