//! The contract between whoever submits a task and whoever runs it.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An activity's input type; it names the activity and its output.
///
/// Both sides compile against it: the client sends the input as JSON, the handler gets it decoded.
///
/// # Examples
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use slipswitch::Activity;
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Activity for Greet {
///     const TYPE: &'static str = "greet";
///     type Output = String;
/// }
/// assert_eq!(Greet::TYPE, "greet");
/// ```
pub trait Activity: Serialize + DeserializeOwned + Send + 'static {
    /// The activity type: the name of the handler.
    const TYPE: &'static str;
    /// What a completed task gives back.
    type Output: Serialize + DeserializeOwned + Send + 'static;
}
