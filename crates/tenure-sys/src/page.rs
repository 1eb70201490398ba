//! The one page of memory that every guard reads.
//!
//! The page is wiped in a forked child, so a child that inherits a leadership reads no deadline,
//! and its check fails: the parent leads, not both.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The smallest page of any Linux; the kernel rounds it up to its own.
const LENGTH: usize = 4096;

/// The words that guards read. All zero in a forked child.
#[repr(C)]
pub struct Words {
    /// Until when the session is held, in nanoseconds of the boot clock; 0: there is none.
    pub deadline: AtomicU64,
    /// Why the session is over, as a code; 0: not said.
    pub over: AtomicU64,
    /// Not zero in the process that made the page.
    pub alive: AtomicU64,
}

/// A page of [`Words`] that a forked child finds empty.
pub struct WipedOnFork {
    words: NonNull<Words>,
    wiped: bool,
}

// SAFETY: the page is owned by this value until it is dropped, lies at a fixed address, and is
// only ever accessed through shared references to atomics.
unsafe impl Send for WipedOnFork {}
// SAFETY: as above: atomics may be shared between threads.
unsafe impl Sync for WipedOnFork {}

impl WipedOnFork {
    /// A fresh page, all zero.
    ///
    /// # Errors
    /// If the kernel has no memory for it.
    pub fn new() -> io::Result<Self> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping at an address that the kernel chooses overlaps nothing.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), LENGTH, prot, flags) }?;
        // SAFETY: the range is exactly the mapping made above, and the advice changes nothing in
        // this process.
        let wiped = unsafe { madvise(page, LENGTH, Advice::LinuxWipeOnFork) }.is_ok();
        let words = NonNull::new(page.cast::<Words>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { words, wiped })
    }

    /// Whether the kernel will wipe the page. If not (Linux before 4.14), process ids have to be
    /// compared.
    #[must_use]
    pub const fn wiped(&self) -> bool {
        self.wiped
    }

    /// What is on it.
    #[must_use]
    pub fn words(&self) -> &Words {
        // SAFETY: the pointer is page-aligned, the mapping is longer than `Words` and lives as
        // long as `self`, and zeroed memory is a valid value of three atomics.
        unsafe { self.words.as_ref() }
    }
}

impl Drop for WipedOnFork {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and `&mut self` proves that no
        // reference into it is left. A failure would leak one page and nothing else.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), LENGTH) };
    }
}
