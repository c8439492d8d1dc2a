//! Code and comments of a Rust file, each alone at its place.
//!
//! Both texts have the lines and columns of the file; what belongs to the other is blank. The
//! inside of string and character literals is in neither.

/// A Rust file taken apart.
#[derive(Debug, Default)]
pub(crate) struct Masked {
    /// Everything but comments and the inside of literals.
    pub(crate) code: String,
    /// Comments alone, with their slashes.
    pub(crate) notes: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Note,
    Literal,
}

impl Masked {
    /// Takes a file apart.
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut kinds = vec![Kind::Code; bytes.len()];
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let rest = bytes.get(at..).unwrap_or_default();
            let (kind, length) = if rest.starts_with(b"//") {
                (Kind::Note, line_length(rest))
            } else if rest.starts_with(b"/*") {
                (Kind::Note, block_length(rest))
            } else if let Some(length) = raw_length(rest).filter(|_| !continues_word(bytes, at)) {
                (Kind::Literal, length)
            } else if byte == b'"' {
                (Kind::Literal, quoted_length(rest, b'"'))
            } else if byte == b'\'' && is_char(rest) {
                (Kind::Literal, quoted_length(rest, b'\''))
            } else {
                (Kind::Code, 1)
            };
            for slot in kinds.iter_mut().skip(at).take(length) {
                *slot = kind;
            }
            if kind == Kind::Literal {
                // The quotes stay in the code, so that an attribute shows that it has a text.
                for end in [at, (at + length).saturating_sub(1)] {
                    if let Some(slot) = kinds.get_mut(end) {
                        *slot = Kind::Code;
                    }
                }
            }
            at += length;
        }
        Self { code: only(bytes, &kinds, Kind::Code), notes: only(bytes, &kinds, Kind::Note) }
    }

    /// The code without what `#[cfg(test)]` guards.
    pub(crate) fn shipped(&self) -> String {
        let mut code = self.code.clone();
        let mut from = 0;
        while let Some(found) = code.get(from..).and_then(|rest| rest.find("#[cfg(test)]")) {
            let begin = from + found;
            let end = item_end(&code, begin + "#[cfg(test)]".len());
            blank(&mut code, begin, end);
            from = end;
        }
        code
    }
}

/// Blanks a range of bytes and keeps its line ends.
pub(crate) fn blank(text: &mut String, begin: usize, end: usize) {
    let inside = |at: usize| at >= begin && at < end;
    let byte = |(at, byte): (usize, u8)| if inside(at) && byte != b'\n' { b' ' } else { byte };
    *text = String::from_utf8_lossy(&text.bytes().enumerate().map(byte).collect::<Vec<u8>>())
        .into_owned();
}

/// Where the item ends that begins at `from`: after its `;` or its closing brace.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_i64;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' => {
                depth -= 1;
                if depth <= 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Says whether `byte` may stand inside a word.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Where `word` stands as a word of its own.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + word.len());
        !before.is_some_and(|&b| is_word(b)) && !after.is_some_and(|&b| is_word(b))
    })
}

/// The line, from one, of a byte.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&b| b == b'\n').count() + 1
}

fn only(bytes: &[u8], kinds: &[Kind], kind: Kind) -> String {
    let pick = |(&byte, &of): (&u8, &Kind)| if of == kind || byte == b'\n' { byte } else { b' ' };
    let picked: Vec<u8> = bytes.iter().zip(kinds).map(pick).collect();
    String::from_utf8_lossy(&picked).into_owned()
}

fn continues_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(|&byte| is_word(byte))
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())
}

fn block_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(two) = rest.get(at..at + 2) {
        match two {
            b"/*" => depth += 1,
            b"*/" if depth == 1 => return at + 2,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    rest.len()
}

/// The length of a raw string, with its prefix and marks.
fn raw_length(rest: &[u8]) -> Option<usize> {
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|p| rest.starts_with(p))?.len();
    let hashes = rest.iter().skip(prefix).take_while(|&&b| b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut at = open + 1;
    loop {
        at += rest.get(at..)?.iter().position(|&b| b == b'"')? + 1;
        let after = rest.get(at..)?;
        if after.iter().take(hashes).filter(|&&b| b == b'#').count() == hashes {
            return Some(at + hashes);
        }
    }
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Tells a character from a lifetime.
fn is_char(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(&first) => {
            let width = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            rest.get(1 + width) == Some(&b'\'')
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_code_keep_their_places() {
        let masked = Masked::of("let a = 1; // b\n/* c /* d */ e */ f();\n");
        assert_eq!(masked.code, "let a = 1;     \n                  f();\n");
        assert_eq!(masked.notes, "           // b\n/* c /* d */ e */     \n");
    }

    #[test]
    fn literals_are_in_neither() {
        let masked = Masked::of(
            "f(\"// x\", r#\"a \" // b\"#, b\"\\\"//\", '\"', '\\'', 'ä');\nlet x: &'a str;",
        );
        assert!(masked.notes.trim().is_empty(), "{:?}", masked.notes);
        assert!(masked.code.starts_with("f(\"    \", r"), "{:?}", masked.code);
        assert!(masked.code.ends_with(");\nlet x: &'a str;"), "{:?}", masked.code);
        assert!(!masked.code.contains("//"));
    }

    #[test]
    fn guarded_items_are_not_shipped() {
        let text = "\
fn a() {}
#[cfg(test)]
mod tests {
    fn b() { if x {} }
}
#[cfg(test)]
mod more;
fn c() {}
";
        let shipped = Masked::of(text).shipped();
        assert_eq!(shipped.split_whitespace().collect::<Vec<_>>().join(" "), "fn a() {} fn c() {}");
        assert_eq!(shipped.lines().count(), text.lines().count());
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("unsafe_code unsafe { }", "unsafe").collect::<Vec<_>>(), [12]);
    }
}
