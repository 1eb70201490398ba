//! Waits that cannot hang.

use std::time::Duration;

use tenure_store::clock;

/// Longer than anything in a test takes, on any machine and beside whatever else runs there: reached only when
/// something hangs.
pub const HANG: Duration = Duration::from_secs(180);

/// What is waited for: that something is so, or something itself.
pub trait Awaited {
    /// What it is.
    type Value;

    /// It, if it is there.
    fn found(self) -> Option<Self::Value>;
}

impl Awaited for bool {
    type Value = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Awaited for Option<T> {
    type Value = T;

    fn found(self) -> Self {
        self
    }
}

/// Looks again and again until it is so, or there.
///
/// # Panics
/// If it takes too long.
pub fn until<A: Awaited>(what: &str, mut look: impl FnMut() -> A) -> A::Value {
    let end = clock::now() + HANG;
    loop {
        if let Some(value) = look().found() {
            return value;
        }
        assert!(clock::now() < end, "this takes too long: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Asks until there is an answer: a group may be founded, or be between two leaders.
///
/// # Panics
/// If there is none for too long.
pub async fn patiently<T, E: std::fmt::Display>(mut ask: impl AsyncFnMut() -> Result<T, E>) -> T {
    let end = clock::now() + HANG;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(clock::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
