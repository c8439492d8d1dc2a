//! Payloads: opaque bytes and what they are said to be.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The content type of what [`Payload::json`] writes.
pub const CONTENT_TYPE_JSON: &str = "application/json";

/// Opaque bytes with a content type. The server never looks inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    bytes: Bytes,
    content_type: String,
}

impl Payload {
    /// Wraps bytes; an empty content type says nothing about them.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>, content_type: impl Into<String>) -> Self {
        Self { bytes: bytes.into(), content_type: content_type.into() }
    }

    /// Encodes a value as JSON.
    ///
    /// # Errors
    ///
    /// When the value's own `Serialize` fails, or has a map with keys that are not text.
    ///
    /// # Examples
    ///
    /// ```
    /// use slipswitch::Payload;
    ///
    /// let payload = Payload::json(&[1, 2, 3])?;
    /// assert_eq!(payload.bytes().as_ref(), b"[1,2,3]");
    /// assert_eq!(payload.content_type(), "application/json");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self::new(serde_json::to_vec(value)?, CONTENT_TYPE_JSON))
    }

    /// Decodes the bytes as JSON, whatever the content type says.
    ///
    /// Bytes that are empty decode as `null`, so that a handler without input or output needs no
    /// payload.
    ///
    /// # Errors
    ///
    /// When the bytes are not JSON or do not have the shape of `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let bytes: &[u8] = if self.bytes.is_empty() { b"null" } else { &self.bytes };
        serde_json::from_slice(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the content type, empty if none was given.
    #[must_use]
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Takes the bytes out.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Takes both parts out.
    #[must_use]
    pub fn into_parts(self) -> (Bytes, String) {
        (self.bytes, self.content_type)
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, content_type: String::new() }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes::from_static(bytes).into()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}
