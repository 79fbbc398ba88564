//! Makes folders and files that only their owner can read, whatever the umask.
//!
//! Chats are private, so everything that the program makes is private too. No other file of `src/`
//! makes folders or files, except at a path that the user names; `tests/tidy/tidy.rs` lists the
//! exceptions. Temporary files of the crate `tempfile` are private already, but its folders are not.
//!
//! On Windows a new file has the rights of its folder, and the user's own folders are private there.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::files;
use tempfile::{TempDir, TempPath};

/// The mode of private folders, and the mask that keeps only the owner's bits of other modes.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;

#[cfg(unix)]
const FILE_MODE: u32 = 0o600;

/// The bits that let the group or others write.
#[cfg(unix)]
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The number of times that an action on a file is tried again while another program has the file open, and
/// the pause before each: a second in total.
const MORE_ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Makes a folder for its owner alone. Fails if it exists.
pub fn create_dir(path: &Path) -> io::Result<()> {
    builder().create(path)
}

/// Makes a folder, and the folders above it if they are missing.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    builder().recursive(true).create(path)
}

fn builder() -> DirBuilder {
    #[allow(unused_mut)]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder
}

/// Makes a new file to write to. Fails if the file exists.
pub fn create_file(path: &Path) -> io::Result<File> {
    options().write(true).create_new(true).open(path)
}

/// Opens a file to read and write, and makes it if it is missing.
pub fn open_file(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create(true).truncate(false).open(path)
}

/// A lock between processes. The system releases it when its process ends.
#[derive(Debug)]
pub struct FileLock(File);

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that was just forked shares the lock until it runs
        // its program.
        let _ = self.0.unlock();
    }
}

impl FileLock {
    const PAUSE: Duration = Duration::from_millis(10);

    /// Tries up to `attempts` times to take a lock; returns `None` if another process holds it.
    pub fn try_acquire(path: &Path, attempts: u32) -> io::Result<Option<FileLock>> {
        let file = open_file(path)?;
        for attempt in 0..attempts {
            if attempt > 0 {
                thread::sleep(FileLock::PAUSE);
            }
            match file.try_lock() {
                Ok(()) => return Ok(Some(FileLock(file))),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Takes a lock, and waits for it as long as another process holds it.
    pub fn wait(path: &Path) -> io::Result<FileLock> {
        let file = open_file(path)?;
        file.lock()?;
        Ok(FileLock(file))
    }

    /// Writes into the file of the lock who holds it, for [`FileLock::holder`].
    pub fn sign(&mut self, holder: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(holder.as_bytes())
    }

    /// Returns what the process that holds a lock wrote into its file; `None` if no process holds it.
    pub fn holder(path: &Path) -> Option<String> {
        FileLock::is_held(path).then(|| fs::read_to_string(path).ok())?
    }

    /// Returns whether a process holds the lock. Takes the lock for a moment to find out.
    pub fn is_held(path: &Path) -> bool {
        files::open(path).is_ok_and(|file| {
            let is_held = file.try_lock_shared().is_err();
            let _ = file.unlock();
            is_held
        })
    }
}

/// Opens a file. While the returned value exists, the file can be read and written, but not removed or renamed.
#[cfg(windows)]
pub(crate) fn open_unremovable(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_SHARE_READ: u32 = 1;
    const FILE_SHARE_WRITE: u32 = 2;
    options().read(true).write(true).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE).open(path)
}

/// Makes a Unix socket to which only its owner can connect. Replaces a socket that has no server.
#[cfg(unix)]
pub fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    if fs::symlink_metadata(path).is_ok_and(|seen| seen.file_type().is_socket())
        && UnixStream::connect(path).is_err_and(|it| it.kind() == io::ErrorKind::ConnectionRefused)
    {
        fs::remove_file(path)?;
    }
    // If the mode were set after the bind, other users could connect in between.
    let umask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(umask);
    bound
}

/// Opens a file to write to. Makes the file if it is missing, and empties it if it exists.
pub fn replace_file(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Writes a file, and replaces the content if the file exists.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_file(path)?.write_all(content)
}

/// Renames a complete temporary file to `path`. Replaces a file with this name in one step.
pub fn replace(file: TempPath, path: &Path) -> io::Result<()> {
    let file = file.keep().map_err(|error| error.error)?;
    let renamed = until_free(|| fs::rename(&file, path));
    if renamed.is_err() {
        drop(fs::remove_file(&file));
    }
    renamed
}

/// Runs an action on a file or folder. Tries again for a second while the action fails because another
/// program has the file open.
///
/// Only Windows refuses to replace or move an open file. Readers and virus scanners soon close the file.
pub fn until_free<T>(action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    retry(action, |error| cfg!(windows) && is_in_use(error))
}

fn retry<T>(
    mut action: impl FnMut() -> io::Result<T>,
    is_passing: impl Fn(&io::Error) -> bool,
) -> io::Result<T> {
    for _ in 0..MORE_ATTEMPTS {
        match action() {
            Err(error) if is_passing(&error) => thread::sleep(PAUSE),
            done => return done,
        }
    }
    action()
}

/// Returns whether an error of Windows says that another program has the file open.
fn is_in_use(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    let number = error.raw_os_error();
    number.is_some_and(|number| [ACCESS_DENIED, SHARING_VIOLATION].contains(&number))
}

fn options() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

/// Makes a temporary folder. Dropping the returned value removes the folder.
pub fn temporary_dir() -> io::Result<TempDir> {
    temporary(tempfile::Builder::new().prefix("verbatim-")).tempdir()
}

/// Makes a temporary folder inside another folder. Dropping the returned value removes the folder.
pub fn temporary_dir_in(folder: &Path, prefix: &str) -> io::Result<TempDir> {
    temporary(tempfile::Builder::new().prefix(prefix)).tempdir_in(folder)
}

fn temporary<'a, 'p, 's>(
    builder: &'a mut tempfile::Builder<'p, 's>,
) -> &'a mut tempfile::Builder<'p, 's> {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(FOLDER_MODE));
    builder
}

/// Makes a file private after a library has created and opened the file.
pub fn protect(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            return file.set_permissions(fs::Permissions::from_mode(mode & FOLDER_MODE));
        }
    }
    let _ = file;
    Ok(())
}

/// Makes a file or folder of this program private, with everything in it. Errors are ignored.
///
/// Symbolic links are not followed, and files of other users are not changed. A folder that is
/// private already is skipped, because nobody else can reach its contents.
pub fn tighten(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
        // On Unix, closing a database file drops SQLite's locks on it, so as few files as possible
        // are opened.
        let Ok(seen) = fs::symlink_metadata(path) else { return };
        let kind = seen.file_type();
        let is_private = seen.mode() & 0o077 == 0 || seen.uid() != user();
        if is_private || !(kind.is_dir() || kind.is_file()) {
            return;
        }
        if kind.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                tighten(&entry.path());
            }
        }
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
        let Ok(file) = opened else { return };
        if file.metadata().is_ok_and(|there| (there.dev(), there.ino()) == (seen.dev(), seen.ino()))
        {
            drop(file.set_permissions(fs::Permissions::from_mode(seen.mode() & FOLDER_MODE)));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Returns whether the user owns a folder and nobody else can reach its contents.
pub fn is_private(folder: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        folder.uid() == user() && folder.mode() & 0o077 == 0
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        false
    }
}

/// Returns why another user may have written a file or folder; `None` if no other user can have.
pub fn distrust(metadata: &Metadata) -> Option<&'static str> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        distrusted(metadata.uid(), metadata.mode(), user())
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

#[cfg(unix)]
fn distrusted(owner: u32, mode: u32, user: u32) -> Option<&'static str> {
    if owner != user && owner != 0 {
        Some("it belongs to another user, who could change what it answers")
    } else if mode & WRITABLE_BY_OTHERS != 0 {
        Some("other users can write to it, and could change what it answers")
    } else {
        None
    }
}

/// Returns whether other users may read or write a file.
pub fn is_open_to_others(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.mode() & 0o077 != 0
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_waits_until_a_file_is_free() {
        let results = [Err(32), Err(5), Ok("done"), Err(32)];
        let mut left = results.into_iter().map(|it| it.map_err(io::Error::from_raw_os_error));
        assert_eq!(retry(|| left.next().unwrap(), is_in_use).unwrap(), "done");
        let mut times = 0;
        let missing = || -> io::Result<()> {
            times += 1;
            Err(io::Error::from_raw_os_error(2))
        };
        assert!(retry(missing, is_in_use).is_err());
        assert_eq!(times, 1, "nobody waits for a file that is missing");
    }

    #[test]
    fn a_file_is_replaced_while_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let replaced = |content: &str| {
            let file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
            write(file.path(), content.as_bytes()).unwrap();
            replace(file.into_temp_path(), &path)
        };
        replaced("first").unwrap();
        let reader = File::open(&path).unwrap();
        let (sent, received) = std::sync::mpsc::channel();
        let closing = thread::spawn(move || {
            received.recv().unwrap();
            thread::sleep(3 * PAUSE);
            drop(reader);
        });
        sent.send(()).unwrap();
        replaced("second").unwrap();
        closing.join().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replaced("third").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }
}

#[cfg(all(test, unix))]
mod unix_tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_lock_that_a_forked_process_shares_is_free_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = FileLock::try_acquire(&path, 1).unwrap().unwrap();
        // A forked child process holds a copy of the lock until the child runs its program.
        let _shared = lock.0.try_clone().unwrap();
        assert!(FileLock::is_held(&path) && FileLock::try_acquire(&path, 1).unwrap().is_none());
        drop(lock);
        assert!(!FileLock::is_held(&path) && FileLock::try_acquire(&path, 1).unwrap().is_some());
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn open_up(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_what_is_ours_to_tighten_is_tightened() {
        let home = tempfile::tempdir().unwrap();
        let (ours, outside) = (home.path().join("ours"), home.path().join("outside"));
        fs::create_dir_all(ours.join("inner")).unwrap();
        for path in [&ours.join("file"), &ours.join("inner/file"), &outside] {
            fs::write(path, "text").unwrap();
            open_up(path, 0o666);
        }
        symlink(&outside, ours.join("link")).unwrap();
        open_up(&ours.join("inner"), 0o777);
        open_up(&ours, 0o755);
        tighten(&ours);
        assert_eq!((mode(&ours), mode(&ours.join("inner"))), (0o700, 0o700));
        assert_eq!((mode(&ours.join("file")), mode(&ours.join("inner/file"))), (0o600, 0o600));
        assert_eq!(mode(&outside), 0o666, "links are not followed");
    }

    #[test]
    fn what_others_can_write_is_not_trusted() {
        let is_trusted = |owner, mode| distrusted(owner, mode, 1000).is_none();
        assert!(is_trusted(1000, 0o40700) && is_trusted(1000, 0o100644));
        assert!(is_trusted(0, 0o40755), "who is root can do everything anyway");
        assert!(!is_trusted(1001, 0o40700));
        assert!(!is_trusted(1000, 0o100666) && !is_trusted(1000, 0o40770));
    }
}
