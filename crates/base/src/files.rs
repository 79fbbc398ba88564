//! Opens files to read. In the place of a file may be a folder, a pipe or a device, or a link to a file that is
//! gone: for example what a container makes of a file that its host lacks, or a disk that is not mounted. This is
//! an error that says so. Nothing waits for a pipe, and no such file counts as absent.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The error of a path that has something else in the place of a file.
#[derive(Debug)]
struct NotAFile(&'static str);

impl std::fmt::Display for NotAFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it is {}, not a file", self.0)
    }
}

impl std::error::Error for NotAFile {}

/// Opens a file to read. If there is nothing at the path, the error is of the kind `NotFound`.
pub fn open(path: &Path) -> io::Result<File> {
    check(path)?;
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path)?;
    // Another file may have come into its place.
    check_type(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a whole file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole file, which is UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Fails if there is no file at a path. If there is nothing, the error is of the kind `NotFound`.
pub fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) => check_type(metadata.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_link(path) => {
            Err(io::Error::other(NotAFile("a link to something that is gone")))
        }
        Err(error) => Err(error),
    }
}

/// Returns whether a path names anything, even a link to something that is gone.
pub fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Returns whether a path names a link. A link to something that is gone is no absent file. A file that another program
/// makes at this moment is no link.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Returns whether an error says that something else is in the place of a file.
pub fn is_no_file(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotAFile>())
}

fn check_type(found: FileType) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = if found.is_dir() { "a folder" } else { "a pipe or a device" };
    Err(io::Error::other(NotAFile(what)))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_named_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::os::unix::fs::symlink(folder.path().join("gone"), &path).unwrap();
        let error = open(&path).unwrap_err();
        assert!(is_no_file(&error) && error.to_string().contains("link"), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = read(&path).unwrap_err();
        assert!(is_no_file(&error) && error.to_string().contains("pipe"), "{error}");
        for (path, what) in [(folder.path(), "folder"), (Path::new("/dev/null"), "device")] {
            let error = read_to_string(path).unwrap_err();
            assert!(is_no_file(&error) && error.to_string().contains(what), "{error}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, "text").unwrap();
        assert_eq!(read_to_string(&path).unwrap(), "text");
        assert!(!is_no_file(&open(&path.join("y")).unwrap_err()));
    }
}
