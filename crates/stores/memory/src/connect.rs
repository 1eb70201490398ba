//! From a URL to a store: `memory:` or `memory:NAME`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use tenure_store::{StoreUrl, UrlError};

use crate::MemoryStore;
use crate::world::World;

const SCHEME: &str = "memory";

/// The named stores of this process. They stay after the last connection is dropped, as a file
/// or a server would.
static NAMED: LazyLock<Mutex<HashMap<String, Arc<World>>>> = LazyLock::new(Mutex::default);

impl MemoryStore {
    /// Connects to a fresh private store (`memory:`), or to the one store of that name inside
    /// this process (`memory:NAME`).
    ///
    /// # Errors
    /// A [`UrlError`] that names the part of the URL that is wrong.
    pub fn connect(url: &StoreUrl) -> Result<Self, UrlError> {
        if url.scheme != SCHEME {
            return Err(UrlError::UnknownScheme {
                scheme: url.scheme.clone(),
                known: format!("`{SCHEME}:`"),
            });
        }
        if url.rest.contains('/') {
            return Err(UrlError::Rest {
                scheme: SCHEME,
                problem: format!("`{}` is a path, and a store in memory has only a name", url.rest),
                example: "memory:orders",
            });
        }
        url.only(&[])?;
        if url.rest.is_empty() {
            return Ok(Self::new(url.options.clone()));
        }
        let mut named = NAMED.lock().expect("no connection panics under the lock");
        let world = named.entry(url.rest.clone()).or_insert_with(|| Arc::new(World::new()));
        Ok(Self { world: Arc::clone(world), options: url.options.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(url: &str) -> Result<MemoryStore, UrlError> {
        MemoryStore::connect(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn a_name_is_one_store_and_no_name_is_a_store_of_its_own() {
        let identity = |url| connect(url).unwrap().world.identity();
        assert_eq!(identity("memory:one"), identity("memory:one?namespace=blue"));
        assert_ne!(identity("memory:one"), identity("memory:two"));
        assert_ne!(identity("memory:"), identity("memory:"));
    }

    #[test]
    fn a_wrong_url_is_refused_by_the_part_that_is_wrong() {
        let message = |url| connect(url).unwrap_err().to_string();
        assert!(message("sqlite:x.db").contains("`sqlite:`"));
        assert!(message("memory://orders").contains("`memory:orders`"));
        assert!(message("memory:orders?pool=3").contains("unknown parameter `pool`"));
    }
}
