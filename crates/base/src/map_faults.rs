//! Protection against other programs that truncate a mapped file.
//!
//! Reading a memory map beyond the present end of its file ends a process with SIGBUS. After a
//! call of [`survive`], such a read of a map that was registered with [`register`] returns zeros and is
//! counted. Code that reads maps asks a [`FaultWatch`], or runs within [`sound`], and discards what it read if a
//! fault happened meanwhile. A fault at any other address is handled as if this module did not exist.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::{io, ptr, thread};

use memmap2::Mmap;

use crate::lock::lock;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// The registered ranges of memory, as a linked list. Entries are reused, and never freed.
static RANGES: AtomicPtr<Mapping> = AtomicPtr::new(ptr::null_mut());

/// Held while a range is added. The signal handler takes no lock.
static ADDING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread runs inside [`caught`], which reports panics to its caller.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// The source location of the last panic that was caught on this thread.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs work that may panic because files change while the work reads them.
///
/// Returns the message and the source location of a panic as the error, and does not print them.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                return before(info);
            }
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            PLACE.replace(place);
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    done.map_err(|panic| format!("{} ({})", message(&*panic), PLACE.take()))
}

/// Runs `work` on several threads, or on this one if it is to be one, and returns the results in no particular
/// order.
///
/// Panics if `work` does: the caller expects panics, because files may change while they are read.
pub fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    if threads == 1 {
        return vec![work()];
    }
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| caught(&work))).collect();
        let done = workers.into_iter().map(|worker| match worker.join() {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => panic!("{panic}"),
            Err(panic) => panic::resume_unwind(panic),
        });
        done.collect()
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

/// Notices reads of missing pages in mapped files. The default watches since the process began.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultWatch {
    /// The number of faults before.
    before: u64,
}

impl FaultWatch {
    /// Returns a watch that notices the faults from now on, in every thread.
    pub fn begin() -> FaultWatch {
        FaultWatch { before: COUNT.load(Ordering::Acquire) }
    }

    /// Returns whether there was a fault, so that what was read meanwhile may be wrong.
    pub fn has_noticed(self) -> bool {
        COUNT.load(Ordering::Acquire) != self.before
    }
}

/// Runs work that reads mapped files. Fails with a reason if the work panics, or if a mapped file was cut
/// meanwhile.
pub fn sound<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let watch = FaultWatch::begin();
    let done = caught(work)?;
    if watch.has_noticed() {
        return Err("its files were cut while they were read".to_owned());
    }
    Ok(done)
}

/// A list entry with a registered range of memory. The entry is free while `end` is 0.
#[derive(Debug)]
struct Mapping {
    start: AtomicUsize,
    end: AtomicUsize,
    next: *const Mapping,
}

/// The registration of a map, which ends when this value is dropped. The map must be dropped later.
#[derive(Debug)]
pub struct Registration(&'static AtomicUsize);

/// Registers a map of a file, so that the process survives if the file is truncated.
pub fn register(map: &[u8]) -> Registration {
    let _adding = lock(&ADDING);
    let start = map.as_ptr() as usize;
    let end = start + map.len();
    if let Some(entry) = entries().find(|entry| entry.end.load(Ordering::Acquire) == 0) {
        entry.start.store(start, Ordering::Release);
        entry.end.store(end, Ordering::Release);
        return Registration(&entry.end);
    }
    let entry: &'static mut Mapping = Box::leak(Box::new(Mapping {
        start: AtomicUsize::new(start),
        end: AtomicUsize::new(end),
        next: RANGES.load(Ordering::Acquire),
    }));
    RANGES.store(entry, Ordering::Release);
    Registration(&entry.end)
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Returns all entries of the list; safe in a signal handler.
fn entries() -> impl Iterator<Item = &'static Mapping> {
    let mut next: *const Mapping = RANGES.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: every pointer in the list comes from a leaked box, whose `next` never changes.
        let entry: &'static Mapping = unsafe { next.as_ref()? };
        next = entry.next;
        Some(entry)
    })
}

#[cfg(unix)]
fn is_registered(address: usize) -> bool {
    entries().any(|entry| {
        let end = entry.end.load(Ordering::Acquire);
        (entry.start.load(Ordering::Acquire)..end).contains(&address)
    })
}

/// Makes reads of missing pages in registered maps return zeros, in the whole process.
///
/// On systems where a mapped file cannot be truncated, such as Windows, this does nothing.
pub fn survive() {
    #[cfg(unix)]
    {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(unix::install);
    }
}

#[cfg(unix)]
mod unix {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::{mem, ptr};

    use super::{COUNT, is_registered};

    static PAGE: AtomicUsize = AtomicUsize::new(0);

    /// The signal handler that was installed before the handler of this module.
    static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

    pub(super) fn install() {
        // SAFETY: the calls follow their manuals, and `on_fault` does only what a signal handler may do.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE);
            let Ok(page @ 1..) = usize::try_from(page) else { return };
            PAGE.store(page, Ordering::Relaxed);
            let mut previous: libc::sigaction = mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous) != 0 {
                return;
            }
            let _ = PREVIOUS.set(previous);
            let mut action: libc::sigaction = mem::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    }

    /// Replaces a missing page with a page of zeros. The kernel then repeats the read.
    extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let page = PAGE.load(Ordering::Relaxed);
        // SAFETY: the kernel passes a valid description of the fault. The page lies in a read-only
        // map that this program registered, and has no memory behind it, so replacing it loses
        // nothing. `mmap` is a system call that takes no lock and allocates nothing.
        let is_replaced = unsafe {
            let code = (*info).si_code;
            let address = (*info).si_addr() as usize;
            let start = address & !(page - 1);
            let kind = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANON;
            code == libc::BUS_ADRERR
                && is_registered(address)
                && libc::mmap(start as *mut _, page, libc::PROT_READ, kind, -1, 0)
                    != libc::MAP_FAILED
        };
        if is_replaced {
            COUNT.fetch_add(1, Ordering::Release);
        } else {
            pass_on(signal, info, context);
        }
    }

    /// Passes a fault outside of registered maps to the handler that was installed before.
    fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let handler = PREVIOUS.get().map(|previous| (previous.sa_sigaction, previous.sa_flags));
        // SAFETY: the system returned the address and the flags together, and the flags tell the
        // signature of the function at the address.
        unsafe {
            match handler {
                None | Some((libc::SIG_DFL | libc::SIG_IGN, _)) => {
                    // The kernel repeats the read, and the signal's default ends the process.
                    libc::signal(signal, libc::SIG_DFL);
                }
                Some((handler, flags)) if flags & libc::SA_SIGINFO != 0 => {
                    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                        mem::transmute(handler);
                    handler(signal, info, context);
                }
                Some((handler, _)) => {
                    let handler: extern "C" fn(i32) = mem::transmute(handler);
                    handler(signal);
                }
            }
        }
    }
}

/// A file mapped into memory, read-only. The process survives if the file is truncated
/// ([`survive`]).
#[derive(Debug)]
pub struct Mapped {
    // Declared before `map`, so that the registration is dropped before the map.
    _registration: Option<Registration>,
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl Mapped {
    /// Maps a whole file. An empty file is no error.
    pub fn new(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped { _registration: None, map: None });
        }
        // SAFETY: this program maps a file only after it has written the file. It does not change
        // or truncate the file afterwards.
        let map = unsafe { Mmap::map(file)? };
        Ok(Mapped { _registration: Some(register(&map)), map: Some(map) })
    }

    /// Gives back the memory of the pages that were read. They are read again when they are needed.
    pub fn release(&self) {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // SAFETY: nobody writes to the map, so the pages can be read from the file again. If
            // the system refuses, they stay in memory.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{env, io::Write, os::unix::process::ExitStatusExt, process::Command};

    use super::*;

    /// The environment variable that makes a child process read a map without registering it.
    const FOREIGN: &str = "VERBATIM_FOREIGN_MAP";

    #[test]
    fn panics_are_reported_to_the_caller() {
        assert_eq!(caught(|| 1), Ok(1));
        let told = caught(|| panic!("in {}", "words")).unwrap_err();
        assert!(told.starts_with("in words (crates/base/src/map_faults.rs:"), "{told}");
        assert!(caught(|| [1][std::hint::black_box(1)]).unwrap_err().contains("out of bounds"));
        assert!(!IS_CAUGHT.get());
    }

    /// Maps a file of 1 MiB, truncates it to 500,000 bytes and returns the byte at 900,000.
    fn read_beyond_the_cut(is_ours: bool) -> u8 {
        survive();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        // SAFETY: the test truncates the file on purpose.
        let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
        let registration = is_ours.then(|| register(&map));
        // SAFETY: the place is within the map.
        let byte = |at: usize| unsafe { ptr::read_volatile(&raw const map[at]) };
        let watch = FaultWatch::begin();
        assert_eq!(byte(900_000), b'x');
        assert!(!watch.has_noticed());
        file.set_len(500_000).unwrap();
        let read = byte(900_000);
        assert_eq!(byte(100), b'x');
        assert!(watch.has_noticed());
        drop(registration);
        assert!(!is_registered(map.as_ptr() as usize));
        read
    }

    #[test]
    fn a_cut_map_of_ours_reads_as_zeros() {
        assert_eq!(read_beyond_the_cut(true), 0);
        assert_eq!(read_beyond_the_cut(true), 0, "an entry is used again");
    }

    /// Runs in the child process of the next test. In any other process, this test does nothing.
    #[test]
    fn child_with_a_foreign_map() {
        if env::var_os(FOREIGN).is_some() {
            read_beyond_the_cut(false);
        }
    }

    #[test]
    fn a_cut_map_of_others_ends_the_process() {
        let name = "map_faults::tests::child_with_a_foreign_map";
        let child = Command::new(env::current_exe().unwrap())
            .args([name, "--exact", "--test-threads=1"])
            .env(FOREIGN, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{child:?}");
    }
}
