//! The list of all scenarios, as tests.

/// Makes a test of every scenario, for a [`SqlServer`](crate::sql::SqlServer).
#[macro_export]
macro_rules! sql_suite {
    ($server:ty) => {
        $crate::__sql_tests! { $server;
            blocked: no_verb_that_waits_for_a_lock_holds_up_the_renewal_of_its_session,
                no_reader_of_the_history_holds_up_a_renewal_or_a_claim,
                a_leader_that_is_stopped_inside_a_fenced_transaction_is_succeeded,
                a_lapsed_session_is_retired_while_its_lease_is_locked;
            disk: what_finds_no_room_is_refused_in_words_and_granted_when_there_is,
                a_leader_whose_servers_log_finds_no_room_steps_down_and_leads_again_under_a_higher_term;
            encryption: with_a_good_certificate_every_connection_is_encrypted,
                a_certificate_that_nobody_trusted_has_signed_is_refused, a_certificate_that_has_expired_is_refused,
                a_certificate_for_another_host_is_refused,
                a_server_that_does_not_encrypt_is_refused_where_that_was_asked_for,
                on_this_machine_a_connection_is_plain_if_it_cannot_be_encrypted,
                a_root_that_cannot_be_read_is_named;
            failover: a_promoted_replica_that_missed_terms_repeats_none_and_nobody_leads_too_early,
                a_replica_is_no_store_until_it_is_promoted_and_beside_its_primary_passed_over;
            faults: a_leader_whose_every_connection_is_ended_once_a_second_keeps_its_term,
                a_lock_that_outlasts_several_requests_costs_no_leader_its_term,
                a_request_over_which_the_server_ends_the_connection_is_indeterminate,
                a_server_that_is_restarted_within_the_lease_changes_no_leader,
                a_server_that_is_killed_and_launched_again_goes_on_with_rising_terms,
                on_a_server_that_has_become_read_only_a_leader_carries_on_to_its_deadline,
                a_claim_whose_answer_is_lost_is_read_back_and_granted_once,
                a_leader_whose_words_are_held_longer_than_its_lease_is_succeeded_and_never_returns,
                a_leader_whose_words_are_dropped_is_succeeded_without_overlap,
                a_leader_that_hears_no_answers_is_succeeded_without_overlap,
                a_leader_whose_connections_are_reset_and_refused_is_succeeded_without_overlap,
                a_slow_way_to_the_server_changes_no_leader,
                without_news_a_lease_that_was_given_up_is_found_by_looking,
                a_server_without_a_connection_to_spare_says_so_and_its_leader_leads_on,
                a_server_that_is_gone_is_unavailable_and_the_store_is_usable_when_it_is_back;
            fencing: the_leader_writes, whoever_leads_no_longer_writes_nothing,
                work_that_fails_writes_nothing_and_its_error_comes_back,
                work_that_ends_its_own_transaction_is_told_so, a_dropped_transaction_commits_nothing,
                work_that_was_given_up_keeps_no_successor_waiting,
                a_successor_is_not_granted_the_lease_while_the_work_runs,
                a_long_transaction_does_not_stop_renewals;
            idle: idle_nodes_renew_once_per_interval_and_ask_nothing_else,
                an_idle_node_keeps_only_the_connections_that_it_needs,
                a_hand_over_takes_one_write_and_one_read_however_many_stand;
            people: three_that_come_at_once_make_the_tables_once, tables_of_a_newer_tenure_are_left_alone,
                a_server_that_is_down_is_named, a_person_reads_who_leads,
                a_server_with_few_connections_to_spare_is_told_for_how_many_nodes_they_do;
            vandalism: what_would_break_a_promise_is_refused_by_the_database_in_words,
                a_leader_whose_lease_was_taken_away_by_hand_steps_down_when_another_is_granted_it,
                a_lease_that_was_taken_away_by_hand_is_granted_again_under_a_higher_term,
                a_session_that_was_ended_by_hand_costs_its_leader_the_term,
                a_term_that_nothing_can_be_above_is_an_error_and_never_granted_twice,
                words_that_tenure_did_not_write_are_an_error_and_no_panic,
                a_history_that_was_set_back_is_found_out;
        }
    };
}

/// Not for use: the loop of [`sql_suite!`](crate::sql_suite!).
#[doc(hidden)]
#[macro_export]
macro_rules! __sql_tests {
    ($server:ty;) => {};
    ($server:ty; $part:ident: $($scenario:ident),+; $($rest:tt)*) => {
        mod $part {
            use super::*;
            $(
                #[tokio::test]
                async fn $scenario() {
                    $crate::sql::$part::$scenario::<$server>().await;
                }
            )+
        }
        $crate::__sql_tests! { $server; $($rest)* }
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// A scenario that nobody plays shows nothing.
    #[test]
    fn every_scenario_is_on_the_list() {
        let list = include_str!("list.rs");
        let list = list.split("#[cfg(test)]").next().expect("there is a list");
        let listed = |word: &str| list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql");
        let mut scenarios = 0;
        let parts =
            ["blocked", "disk", "encryption", "failover", "faults", "fencing", "idle", "people", "vandalism"];
        for part in parts {
            let text = fs::read_to_string(folder.join(part).with_extension("rs")).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let scenario = line.split(['(', '<']).next().unwrap();
                assert!(listed(scenario), "`{scenario}` is not run by `sql_suite!`");
                scenarios += 1;
            }
        }
        assert!(scenarios > 40, "the suite shrank to {scenarios} scenarios");
    }
}
