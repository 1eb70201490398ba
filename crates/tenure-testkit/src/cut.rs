//! A leader that is cut off from its store, by whatever kind of cut, and a rival that is not.

use tenure::Reason;
use tenure_store::clock;

use crate::checker::check_leaderships;
use crate::proxy::Proxy;
use crate::stage::{Witness, brief, calm, lead, renewals, soon, stand, start};

/// It stops at its deadline and not before, is succeeded without overlap, and never returns under its old
/// term, whatever arrives late. The proxy is in front of the server that `near` leads to; `far` is the same
/// by way of the proxy's port.
///
/// # Panics
/// If any of that is not so.
pub async fn a_leader_that_is_cut_off_is_succeeded(
    port: u16,
    near: &str,
    far: impl Fn(u16) -> String,
    cut: impl Fn(&Proxy),
) {
    let proxy = Proxy::before(port);
    let far = start(brief("far"), &far(proxy.port())).await;
    let near = start(calm("near"), near).await;
    let first = lead(&far).await;
    let first_watch = Witness::of(&far, &first);
    let successor = stand(&near);
    let due = far.held().now().until;
    cut(&proxy);
    assert_eq!(soon(first.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    let second = soon(successor).await.expect("it is elected");
    let second_watch = Witness::of(&near, &second);
    // Whatever was on its way arrives now, late.
    proxy.pass();
    drop(first);
    let third = stand(&far);
    renewals(&near, 3).await;
    assert!(!third.is_finished());
    soon(second.resign()).await.expect("it leads");
    let mut told = vec![first_watch.tell(), second_watch.tell()];
    let third = soon(third).await.expect("it is elected");
    told.push(Witness::of(&far, &third).tell());
    assert_eq!(check_leaderships(&told), []);
    assert_eq!(told.iter().map(|one| one.term).collect::<Vec<_>>(), [1, 2, 3]);
}
