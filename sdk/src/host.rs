//! The name of this host, for the node that a worker registers under.

use slipswitch_core::Node;

/// Returns the host's name if it is a valid node name.
pub(crate) fn node() -> Option<Node> {
    as_node(&name()?)
}

/// Returns a name for this process: program, host and process id.
pub(crate) fn identity() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.map_or_else(|| "worker".into(), |name| name.to_string_lossy());
    let host = node().map_or_else(|| "unknown-host".to_owned(), |node| node.to_string());
    format!("{program}@{host}:{}", std::process::id())
}

/// A host name may be qualified, and may end with a line break or a dot.
fn as_node(name: &str) -> Option<Node> {
    Node::new(name.trim().trim_end_matches('.')).ok()
}

#[cfg(target_os = "linux")]
fn name() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname").ok()
}

#[cfg(windows)]
fn name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

#[cfg(not(any(target_os = "linux", windows)))]
fn name() -> Option<String> {
    let output = std::process::Command::new("hostname").output().ok()?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_defaults_to_the_host_name_only_if_valid() {
        assert_eq!(as_node("box-7\n").unwrap().as_str(), "box-7");
        assert_eq!(as_node("box-7.example.org.").unwrap().as_str(), "box-7.example.org");
        for bad in ["", "\n", "_internal", "büro", "a b", &"x".repeat(129)] {
            assert_eq!(as_node(bad), None, "{bad:?}");
        }
    }
}
