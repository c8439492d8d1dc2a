use super::*;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("slip-profile-{name}-{}", std::process::id()));
    // Left over from an earlier run with the same process id, or not there.
    let _ = fs::remove_dir_all(&dir);
    dir
}

#[test]
fn a_note_is_read_as_written_and_only_its_owner_may_read_it() {
    let dir = scratch("round");
    let path = dir.join("dev.json");
    let note = DevProfile::new("127.0.0.1:4777", "ab".repeat(32));
    note.write_to(&path).unwrap();
    assert_eq!(DevProfile::read_from(&path).unwrap(), note);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    }
    let newer = DevProfile::new("127.0.0.1:4779", "cd".repeat(32));
    newer.write_to(&path).unwrap();
    assert_eq!(DevProfile::read_from(&path).unwrap(), newer);
    note.remove_from(&path);
    assert_eq!(DevProfile::read_from(&path).unwrap(), newer, "another server's note stays");
    newer.remove_from(&path);
    assert!(matches!(DevProfile::read_from(&path), Err(ProfileError::Missing { .. })));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_damaged_note_says_so() {
    let dir = scratch("damaged");
    let path = dir.join("dev.json");
    DevProfile::new("a", "b").write_to(&path).unwrap();
    fs::write(&path, b"{\"address\":").unwrap();
    assert!(matches!(DevProfile::read_from(&path), Err(ProfileError::Damaged { .. })));
    fs::write(&path, vec![b' '; 65 * 1024]).unwrap();
    assert!(matches!(DevProfile::read_from(&path), Err(ProfileError::Damaged { .. })));
    fs::remove_dir_all(&dir).unwrap();
}

#[cfg(unix)]
#[test]
fn a_directory_that_others_may_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch("foreign");
    let path = dir.join("dev.json");
    DevProfile::new("a", "b").write_to(&path).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(DevProfile::read_from(&path), Err(ProfileError::NotOurs { .. })));
    let rewritten = DevProfile::new("c", "d").write_to(&path);
    assert!(matches!(rewritten, Err(ProfileError::NotOurs { .. })));
    fs::remove_dir_all(&dir).unwrap();
}
