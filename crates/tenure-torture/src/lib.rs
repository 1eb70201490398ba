//! What the tests with real processes share with the torture: what candidates say ([`journal`]), signals to
//! them ([`signals`]), and the evidence that they leave behind ([`evidence`]).

pub mod evidence;
pub mod journal;
pub mod signals;
