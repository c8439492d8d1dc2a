//! Short texts that travel with every task: counted slices of what arrived, not copies.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

/// A text that is cheap to clone, usually a slice of the frame it came in.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Bytes);

impl Text {
    /// The empty text.
    pub const EMPTY: Self = Self(Bytes::new());

    /// Wraps a text that lives as long as the program.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Takes bytes that are UTF-8; none if they are not.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        std::str::from_utf8(&bytes).is_ok().then_some(Self(bytes))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Checked when it was made; an empty text stands for what cannot be.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the bytes, as a counted slice.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Cuts a text to at most so many bytes, between two characters.
pub fn cut(text: &mut String, bytes_max: usize) {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_is_a_text() {
        let bytes = Bytes::from_static("größe".as_bytes());
        let text = Text::from_bytes(bytes.clone()).expect("it is");
        assert_eq!((text.as_str(), text.as_bytes().as_ptr()), ("größe", bytes.as_ptr()));
        assert_eq!(Text::from_bytes(Bytes::from_static(&[0xff])), None);
        assert_eq!(Text::EMPTY, "");
    }
}
