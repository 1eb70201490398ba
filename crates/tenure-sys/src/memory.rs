//! Memory that is free, but still ours.

/// Gives memory back to the system that the allocator only keeps for later. Where the allocator is not
/// that of glibc, nothing happens.
///
/// It takes about a millisecond for every ten mebibytes, and holds up whoever allocates meanwhile: for rare
/// moments, after much was freed.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(keep: usize) -> i32;
        }
        // SAFETY: glibc declares exactly this, and it may be called at any time from any thread: it takes
        // the allocator's own locks, and touches only memory that nobody has.
        let _ = unsafe { malloc_trim(0) };
    }
}
