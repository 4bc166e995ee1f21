"""What has stopped people once, by HTTP and the command line: which tests try it, and are there.

Each was tried on an event of real servers, before and after a restart where that could undo what
keeps it out. The page of threats has its own list, in `test_threats`: this one is of the ways that
had worked.
"""

from __future__ import annotations

import pytest
from bistro.test_threats import TESTS, names_of_tests

STRANGERS, SIGNED = (
    "upload_server/test_strangers.py",
    "log_service/server/test_signed_commits.py",
)
EVIDENCE, RECOVERY = "destination/run/test_evidence.py", "destination/run/test_recovery.py"
EVENT_RUN, CROWDS = "destination/run/test_event_run.py", "test_crowds.py"
QUOTAS, AMENDING = "destination/run/test_quotas.py", "upload_server/test_amending.py"
SERVICE_CORE = "log_service/test_core.py"

TRIED: dict[str, tuple[str, ...]] = {
    "a ticket and somebody's receipt block his file, hold it, or have it refused": (
        f"{STRANGERS}::test_nobody_but_its_owner_pushes_holds_or_spoils_an_entry",
        f"{STRANGERS}::test_a_signed_request_that_comes_again_changes_nothing",
        "destination/test_register.py::test_junk_that_a_bistro_reports_by_itself_refuses_nobody",
    ),
    "who hears a token spends the quota of its owner elsewhere": (
        f"{SIGNED}::test_what_one_service_has_heard_it_cannot_repeat_to_another",
        f"{SIGNED}::test_what_was_heard_spends_nothing_of_it_after_a_restart_either",
        f"{SIGNED}::test_who_hammers_with_a_stolen_token_does_not_lock_its_owner_out",
    ),
    "who hears a token fills the places of its owner at bistros": (
        f"{STRANGERS}::test_who_sees_a_token_takes_none_of_its_owners_places",
    ),
    "one ticket reserves all room without a byte, or with one": (
        f"{STRANGERS}::test_promises_of_one_ticket_leave_room_for_others",
        "upload_server/test_core.py::test_who_sends_nothing_gives_way_to_who_would_be_refused",
    ),
    "drafts beyond the quota are chosen after the deadline": (
        (
            "destination/run/test_quota_over_http.py"
            "::test_drafts_beyond_the_quota_are_collected_and_never_count"
        ),
        f"{QUOTAS}::test_a_service_that_is_silent_after_a_restart_takes_back_nothing",
    ),
    "status is well where files lie on another machine, or nowhere": (
        f"{EVIDENCE}::test_a_register_in_postgresql_says_on_which_machine_files_lie",
        f"{EVIDENCE}::test_files_that_were_collected_by_another_machine_are_named_with_it",
        f"{EVIDENCE}::test_all_files_that_were_removed_are_missing",
    ),
    "status is well while the database or a bistro is silent": (
        f"{EVIDENCE}::test_a_register_that_is_locked_or_removed_or_damaged_is_a_failure",
        f"{EVIDENCE}::test_a_silent_bistro_may_hold_what_is_missing",
    ),
    "status is well while people in time are refused after an extension": (
        f"{EVIDENCE}::test_a_deadline_that_was_moved_after_the_last_round_is_asked_for",
        f"{EVENT_RUN}::test_a_deadline_that_was_moved_is_known_from_services_without_a_destination",
    ),
    "the destination's disk is lost, or restored from an old copy": (
        f"{RECOVERY}::test_all_is_collected_again_and_nobody_is_blamed",
        f"{RECOVERY}::test_without_recovery_no_verdict_is_published",
        f"{RECOVERY}::test_destination_whose_log_is_dead_collects_and_names_what_it_cannot_prove",
        "destination/run/test_succession.py::test_dead_log_is_succeeded_and_every_receipt_verifies",
    ),
    "silent connections close a bistro, a service or a witness": (
        f"{CROWDS}::test_honest_people_end_beside_a_crowd_at_a_bistro",
        f"{CROWDS}::test_500_people_behind_one_address_end_beside_silent_connections_at_a_bistro",
        f"{CROWDS}::test_honest_people_are_timestamped_beside_a_crowd",
    ),
    "who opens outlives a destination that is killed, with the identities": (
        f"{EVENT_RUN}::test_what_was_handed_in_is_collected_proved_and_let_go",
    ),
    "a service whose clock is behind drops honest cosignatures": (
        f"{SERVICE_CORE}::test_a_service_whose_clock_is_behind_says_so_and_publishes_all_the_same",
        f"{SERVICE_CORE}::test_cosignatures_from_the_future_do_not_count_yet",
    ),
    "a bistro refuses people in time after an extension": (
        f"{AMENDING}::test_nobody_is_too_late_before_services_were_asked_once_more",
        f"{AMENDING}::test_later_deadline_counts_once_it_is_published_and_after_a_restart",
    ),
    "a full disk of the destination refuses somebody, or gets another command's advice": (
        "destination/test_opening.py::test_a_full_disk_refuses_nobody",
        f"{EVIDENCE}::test_a_disk_that_fails_is_a_failure",
    ),
    "the page of the protocol does not say each byte": (
        "formats/receipt/test_verifier.py",
        "formats/test_vectors.py",
    ),
}


@pytest.mark.parametrize("attack", TRIED)
def test_the_tests_that_try_an_attack_are_there(attack):
    for each in TRIED[attack]:
        file, _, name = each.partition("::")
        assert (TESTS / file).is_file()
        assert not name or name in names_of_tests(file), each
