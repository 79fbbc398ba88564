//! Files that are cut short while they are mapped into memory.
//!
//! Reading a map beyond the end that its file has now ends a process with SIGBUS. With
//! [`survive`] the page is read as zeros instead, and counted. Who reads maps compares the
//! [`count`] before and after, and takes nothing for true that was read in between.

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
};

/// How many pages were missing so far.
static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread's panics are told to who waits for them, and to nobody else.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where in the source the last panic began that was caught on this thread.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs work on files that may be cut or changed meanwhile, and that may panic over them. Returns the
/// panic's message and place, which are not printed.
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
    done.map_err(|panic| format!("{} ({})", said(&*panic), PLACE.take()))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

/// Returns how many pages of maps were missing when they were read, since the process began.
pub fn count() -> u64 {
    COUNT.load(Ordering::Acquire)
}

/// Reads missing pages of maps as zeros from now on, in the whole process.
///
/// Where files that are mapped cannot be cut, as on Windows, there is nothing to do.
pub fn survive() {
    #[cfg(unix)]
    unix::install();
}

#[cfg(unix)]
mod unix {
    use std::{
        mem, ptr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::COUNT;

    /// Bytes of a page.
    static PAGE: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn install() {
        // SAFETY: these are calls as their manuals have them; the handler below does nothing but
        // what a handler may.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE);
            let Ok(page @ 1..) = usize::try_from(page) else { return };
            PAGE.store(page, Ordering::Relaxed);
            let mut action: libc::sigaction = mem::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    }

    /// Puts a page of zeros where one is missing; the instruction that asked for it is tried again.
    extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
        let page = PAGE.load(Ordering::Relaxed);
        // SAFETY: the kernel hands over what happened. The page it names has nothing behind it, so
        // nothing is lost when another is put there; `mmap` and `signal` are system calls that need
        // no lock and no memory of ours.
        unsafe {
            let info = &*info;
            let is_missing = info.si_code == libc::BUS_ADRERR;
            let start = info.si_addr() as usize & !(page - 1);
            let kind = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANON;
            let is_there = is_missing
                && libc::mmap(start as *mut _, page, libc::PROT_READ, kind, -1, 0)
                    != libc::MAP_FAILED;
            if is_there {
                COUNT.fetch_add(1, Ordering::Release);
            } else {
                // It happens again, and ends the process as it would have.
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{io::Write, ptr};

    use super::*;

    #[test]
    fn panics_are_told_to_who_waits_for_them() {
        assert_eq!(caught(|| 1), Ok(1));
        let told = caught(|| panic!("in {}", "words")).unwrap_err();
        assert!(told.starts_with("in words (src/map_faults.rs:"), "{told}");
        assert!(caught(|| [1][std::hint::black_box(1)]).unwrap_err().contains("out of bounds"));
        assert!(!IS_CAUGHT.get());
    }

    #[test]
    fn what_is_cut_off_is_zeros() {
        survive();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        // SAFETY: that it changes is what is tested.
        let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
        // SAFETY: the place is within the map.
        let byte = |at: usize| unsafe { ptr::read_volatile(&raw const map[at]) };
        let before = count();
        assert_eq!(byte(900_000), b'x');
        assert_eq!(count(), before);
        file.set_len(500_000).unwrap();
        assert_eq!((byte(900_000), byte(100)), (0, b'x'));
        assert!(count() > before);
    }
}
