//! The list of all checks, as tests.

/// Makes a test of every check, named after its promise: `takeover::…`, `terms::…`.
///
/// The argument is an async function or closure without arguments that gives a
/// [`Fixture`](crate::conformance::Fixture): connections to one fresh store.
///
/// ```ignore
/// async fn fresh() -> Fixture {
///     let file = Arc::new(TempDir::new().unwrap());
///     Fixture::new(move |options| {
///         let file = file.clone(); // lives as long as the fixture
///         async move { Ok(Arc::new(MyStore::open(file.path(), options).await?) as Arc<dyn Store>) }
///     })
/// }
/// tenure_testkit::conformance!(fresh);
/// ```
///
/// For another way to a store that has passed them all, some may be enough:
/// `conformance!(fresh; terms: they_rise_over_takeover; identity: …;)`.
#[macro_export]
macro_rules! conformance {
    ($factory:expr; $($some:tt)+) => { $crate::__conformance_tests! { $factory; $($some)+ } };
    ($factory:expr) => {
        $crate::__conformance_list! { __conformance_tests; $factory }
    };
}

/// Makes one test of all checks, `every_promise_is_kept`: for a server that takes long to start, so that all
/// of them share one. The arguments are a function that starts it, and an async one that gives a fixture on a
/// fresh part of it.
#[macro_export]
macro_rules! conformance_together {
    ($start:expr, $fresh:expr) => {
        #[test]
        fn every_promise_is_kept() {
            // Started by the thread that outlives all checks, since it ends with that.
            let server = ::std::sync::Arc::new(($start)());
            let factory = {
                let server = ::std::sync::Arc::clone(&server);
                move || ($fresh)(::std::sync::Arc::clone(&server))
            };
            $crate::conformance::run_together($crate::__conformance_list! { __conformance_checks; factory });
        }
    };
}

/// Not for use: the list itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_list {
    ($made:ident; $factory:expr) => {
        $crate::$made! { $factory;
            ages: an_age_grows_and_a_renewal_resets_it, a_pulse_shows_the_ttl_that_its_node_asked_for;
            closing: everything_is_free_at_once, the_cause_is_recorded_in_every_election_and_for_the_node,
                a_closed_session_is_lost, closing_again_or_what_is_unknown_is_no_error;
            contention: many_takers_of_one_pulse_yield_exactly_one_leader,
                many_first_claims_yield_exactly_one_leader, many_processes_of_one_node_id_yield_exactly_one_session;
            declaration: it_is_told_once_and_only_by_the_leader, it_outlives_its_leader;
            deletion: an_unknown_election_is_absent, a_free_election_is_ended_once, a_led_election_needs_force,
                the_holder_of_an_ended_election_keeps_its_lease_and_is_told,
                a_candidate_that_saw_the_election_before_its_end_is_refused,
                whoever_is_granted_the_lease_while_the_election_ends_keeps_it,
                an_ended_election_starts_anew, an_end_withdraws_the_candidates;
            division: every_partition_has_an_owner_and_never_two;
            dropped_futures: nothing_is_lost_when_futures_are_dropped_half_way;
            grants: nothing_is_known_of_an_election_that_nobody_stood_for,
                a_free_lease_is_granted_to_the_first_claim, a_held_lease_is_refused_and_its_pulse_is_seen,
                a_repeated_claim_changes_nothing, a_claim_without_a_session_is_lost,
                a_refused_claim_registers_its_candidate_once;
            health: a_problem_is_shown_with_its_node_and_told_once, a_new_session_is_healthy,
                a_report_under_a_session_that_is_over_is_refused, a_report_that_was_overtaken_changes_nothing,
                it_says_nothing_of_leases_and_signs_of_life;
            history: a_walk_through_all_transitions_is_told_in_order,
                sequences_are_gapless_in_every_election, ids_rise_and_reading_goes_on_after_one,
                the_newest_can_be_asked_for, what_is_seen_is_already_recorded, retention_keeps_the_newest_events,
                retention_keeps_the_last_transition_whole;
            identity: it_is_the_same_over_verbs_and_connections;
            ledger: a_plan_is_written_only_under_the_term_in_force,
                a_publication_is_refused_once_another_has_followed, of_publications_at_once_exactly_one_is_written,
                a_change_that_is_not_as_it_was_seen_is_refused_alone,
                a_partition_changes_hands_only_once_it_was_released, what_a_session_owned_is_free_once_it_is_over,
                a_former_session_of_a_node_is_known_by_name, silent_workers_are_retired_by_exactly_their_pulse,
                word_is_left_for_whoever_is_concerned, a_reader_goes_on_where_it_stopped,
                a_task_list_keeps_its_number, only_a_live_session_enlists, ledgers_share_nothing,
                what_is_written_is_in_the_history;
            names: awkward_names_are_kept_apart_and_come_back_whole;
            namespaces: they_share_nothing;
            news: every_transition_reaches_another_connection, who_comes_and_goes_reaches_another_connection,
                a_change_of_health_reaches_another_connection, what_concerns_one_node_names_it;
            opening: it_is_idempotent_and_a_sign_of_life, a_live_node_id_is_occupied_and_nothing_changes,
                a_superseded_session_makes_way, a_session_that_lapsed_before_it_was_superseded_is_recorded_as_lapsed,
                a_silent_session_makes_way_by_exactly_its_pulse,
                a_session_that_is_over_cannot_be_opened_again;
            petition: it_needs_a_leader_and_a_successor_that_stands, it_is_noted_once_and_the_leader_is_told,
                a_leader_that_was_asked_makes_way_for_the_first_in_line, it_binds_only_the_term_that_was_asked;
            priority: a_free_lease_that_is_claimed_is_granted_to_a_higher_priority,
                whoever_lowers_its_priority_is_not_before_itself,
                candidates_are_ordered_by_priority_and_then_by_arrival;
            registry: nodes_are_listed_by_id_with_their_state, elections_are_listed_by_name_with_their_records;
            renewal: it_tells_the_sequence_before, it_tells_how_many_terms_were_granted, a_late_duplicate_does_not_lower_the_sequence,
                an_unknown_session_is_lost, one_renewal_keeps_a_thousand_elections,
                it_tells_candidates_how_their_elections_are;
            resignation: the_cause_is_recorded, it_frees_only_its_own_term, it_frees_only_its_own_session,
                a_claim_that_it_has_overtaken_is_void, it_is_void_once_a_later_claim_was_answered,
                it_withdraws_the_candidate, it_is_no_error_under_a_session_that_is_over;
            retirement: it_needs_exactly_the_pulse_that_was_seen, it_ends_a_session_that_holds_nothing,
                it_frees_what_the_session_held, a_retired_node_registers_again, a_purge_forgets_only_what_is_no_more;
            succession: a_resigned_lease_is_granted_to_the_first_in_line, a_named_candidate_comes_before_the_first_in_line,
                a_candidate_that_was_told_that_it_stands_can_be_named,
                a_named_node_that_does_not_stand_is_granted_nothing,
                the_order_is_that_of_priority_and_then_of_arrival, a_candidate_that_was_not_renewed_lately_is_passed_over,
                a_lease_is_free_if_no_candidate_was_renewed_lately, a_closed_session_passes_its_leases_on,
                a_hand_over_is_told_in_order, who_withdraws_or_leaves_is_granted_nothing,
                a_lease_that_was_passed_on_can_be_given_up_unread,
                a_resignation_from_before_does_not_give_up_what_was_passed_on;
            takeover: it_needs_exactly_the_pulse_that_was_seen, it_retires_the_whole_session,
                it_frees_every_election_of_the_session, it_touches_nobody_but_the_holder;
            terms: they_rise_over_resign_close_and_reopening, they_rise_over_takeover, they_rise_over_deletion,
                they_rise_above_what_a_candidate_has_seen, what_a_refused_candidate_has_seen_is_remembered,
                a_claim_that_only_tells_is_granted_nothing;
        }
    };
}

/// Not for use: the checks of the list, by name.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_checks {
    ($factory:expr; $($promise:ident: $($check:ident),+;)*) => {
        vec![$($({
            let factory = $factory.clone();
            $crate::conformance::Check {
                name: concat!(stringify!($promise), "::", stringify!($check)),
                run: Box::new(move || {
                    $crate::conformance::run(factory(), $crate::conformance::$promise::$check);
                }),
            }
        }),+),*]
    };
}

/// Not for use: the loop of [`conformance!`](crate::conformance!).
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($factory:expr;) => {};
    ($factory:expr; $promise:ident: $($check:ident),+; $($rest:tt)*) => {
        mod $promise {
            use super::*;
            $(
                #[test]
                fn $check() {
                    $crate::conformance::run(($factory)(), $crate::conformance::$promise::$check);
                }
            )+
        }
        $crate::__conformance_tests! { $factory; $($rest)* }
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// A check that nobody runs is a promise that nobody keeps.
    #[test]
    fn every_check_is_on_the_list() {
        let list = include_str!("list.rs");
        let list = list.split("#[cfg(test)]").next().expect("there is a list");
        let listed = |word: &str| list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
        let mut checks = 0;
        for file in fs::read_dir(folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let check = line.split('(').next().unwrap();
                assert!(listed(check), "`{check}` is not run by `conformance!`");
                checks += 1;
            }
        }
        assert!(checks > 50, "the suite shrank to {checks} checks");
    }
}
