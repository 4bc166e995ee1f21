"""Each line of the pages of threats is tried: which test does it, and that it is there.

A line that is added to the page, or changed, needs its test named here.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import pytest
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "bistro" / "threats.md"
TESTS = REPOSITORY / "tests" / "bistro"

A_BISTRO, DESTINATION, A_WITNESS, A_SERVICE = (
    "a bistro",
    "the destination",
    "a witness",
    "a service",
)
ORGANISER, A_PERSON, ANYBODY = "the organiser", "a person", "anybody"
SHOWN = "who is shown a proof"
THIEF = "who has stolen a ticket that was revoked since"
HOLDER = "somebody with a ticket, or a service"
WITH_RECEIPT = "somebody with a ticket and another's receipt"
SERVER, ON_THE_WAY, OTHER_PAGE = "who serves the page", "somebody on the way", "another page"
ANSWERING, BESIDE, SAME_NAME = (
    "a service, a bistro",
    "somebody at the same computer",
    "other pages of the same host name",
)

REGISTER, ROUND = "destination/test_register.py", "destination/run/test_destination_round.py"
OPENING, QUOTAS = "destination/test_opening.py", "destination/run/test_quotas.py"
CORE, COSTS = "upload_server/test_core.py", "upload_server/test_costs.py"
KEEPING, STRANGERS = "upload_server/test_keeping.py", "upload_server/test_strangers.py"
TUS, AMENDING = "upload_server/test_tus.py", "upload_server/test_amending.py"
AUDIT, LOGS = "auditor/test_whole_event.py", "auditor/test_hostile_logs.py"
PROOF, SHOWING = "formats/receipt/test_content_proof.py", "person/test_showing.py"
PUSH, UPLOAD = "person/test_push.py", "person/test_upload_to_bistros.py"
TIMES, BRINGING = "destination/run/test_log_times.py", "destination/run/test_bringing.py"
FILE_LIST, FILE_SETS = "formats/log/test_file_list.py", "destination/test_file_sets.py"
SERVICE_CORE, WISH = "log_service/test_core.py", "formats/receipt/test_upload_wish.py"
PAGE_FILES, BROWSER = "page/test_files.py", "page/test_page.py"
# By nothing that a test of ours could try: the browser keeps pages of other names apart.
BY_BROWSERS: tuple[str, ...] = ()

TRIED: dict[tuple[str, str], tuple[str, ...]] = {
    (A_BISTRO, "loses what it has signed for"): (
        f"{UPLOAD}::test_what_a_bistro_has_lost_another_gets_and_both_words_are_kept",
        "destination/run/test_event_run.py::test_what_is_not_there_is_named_with_its_evidence",
    ),
    (A_BISTRO, "alters it"): (
        f"{REGISTER}::test_who_has_shown_all_segments_and_no_such_bytes_is_blamed",
        f"{OPENING}::test_a_changed_segment_is_its_bistros_doing",
    ),
    (A_BISTRO, "takes an upload, and hides the batch"): (
        f"{REGISTER}::test_a_forked_a_hidden_and_an_invented_batch_are_named_and_its_rows_count",
        f"{AUDIT}::test_a_receipt_whose_batch_lacks_the_row_is_evidence",
    ),
    (A_BISTRO, "reports what nobody handed in"): (
        f"{AUDIT}::test_a_row_that_opens_no_commitment_is_evidence",
    ),
    (A_BISTRO, "takes back what it has signed, later"): (
        f"{AUDIT}::test_two_batches_of_one_number_are_evidence",
    ),
    (A_BISTRO, "reads what it holds"): (
        "formats/log/test_entry.py::test_content_is_keyed_and_its_header_has_a_length",
        f"{BROWSER}::test_no_seed_leaves_the_browser_but_in_the_keep",
    ),
    (A_BISTRO, "says that it is loaded, or free"): (
        f"{UPLOAD}::test_the_bistro_that_the_destinations_table_favours_is_pushed_to",
        "person/test_choosing.py::test_no_table_stops_an_upload",
    ),
    (A_BISTRO, "takes what it is sent, and says for ever that it has less, or a byte more"): (
        f"{PUSH}::test_bistro_that_takes_nothing_is_given_up_for_the_next_whatever_it_answers",
        f"{PUSH}::test_bistro_that_takes_a_little_each_time_costs_no_more_than_all_twice",
        f"{BROWSER}::test_bistro_that_has_nothing_for_ever_is_left_for_one_that_takes_the_file",
    ),
    (A_BISTRO, "sends a few bytes a second for ever"): (
        f"{BRINGING}::test_a_bistro_that_trickles_holds_the_others_up_for_so_long_and_no_longer",
    ),
    (A_BISTRO, "lists more than there is room for, or junk"): (
        f"{BRINGING}::test_a_bistro_can_neither_fill_the_disk_nor_serve_what_is_larger_than_it_may_be",
        f"{BRINGING}::test_a_bistro_that_lists_what_fits_nowhere_keeps_nobody_from_being_collected",
    ),
    (A_BISTRO, "keeps a ticket's token, or what was signed for it"): (
        f"{STRANGERS}::test_who_sees_a_token_takes_none_of_its_owners_places",
        f"{STRANGERS}::test_a_signed_request_that_comes_again_changes_nothing",
    ),
    (A_BISTRO, "reports an upload as another ticket's, or one that its ticket has not pushed"): (
        f"{KEEPING}::test_the_ticket_of_a_row_has_signed_it_and_no_other_can_be_put_there",
    ),
    (
        A_BISTRO,
        "lists many versions of an entry, or many uploads by one number, with an owner's help",
    ): (
        f"{REGISTER}::test_of_an_entry_a_bistro_has_two_versions_and_more_are_named",
        f"{REGISTER}::test_two_uploads_of_one_number_are_their_bistros_doing",
    ),
    (
        A_BISTRO,
        "has each byte of an upload lie in a segment of its own, with an owner's help",
    ): (
        f"{REGISTER}::test_crumbs_of_a_byte_in_segments_of_their_own_are_not_fetched",
        f"{QUOTAS}::test_once_nothing_more_can_come_nobody_waits_for_what_is_still_fetched",
    ),
    (A_BISTRO, "signs many batches of one number, serves junk without end"): (
        f"{REGISTER}::test_many_batches_of_one_number_are_shown_by_two_of_them",
        f"{REGISTER}::test_who_serves_junk_without_end_is_remembered_for_some_of_it",
    ),
    (A_BISTRO, "reports junk of somebody's entry, as sealed anew"): (
        f"{AUDIT}::test_a_row_that_its_owner_has_not_signed_is_evidence_against_its_bistro_alone",
        f"{REGISTER}::test_junk_that_a_bistro_reports_by_itself_refuses_nobody",
    ),
    (DESTINATION, "ignores a receipt"): (
        f"{AUDIT}::test_a_row_without_a_verdict_is_of_the_bistro_or_the_destination_in_the_end",
    ),
    (DESTINATION, 'says "does not open"'): (
        f"{UPLOAD}::test_what_does_not_open_is_sealed_anew_and_collected",
    ),
    (DESTINATION, "collects, and says later that it refused"): (
        f"{AUDIT}::test_collected_and_then_refused_is_evidence",
    ),
    (DESTINATION, "lets a bistro delete what is not judged"): (
        f"{CORE}::test_a_word_on_segments_says_nothing_of_batches_that_come_later",
        f"{TUS}::test_older_word_that_comes_again_lets_nothing_go_also_after_a_restart",
    ),
    (DESTINATION, "shows two people two logs of verdicts"): (
        f"{AUDIT}::test_a_word_on_a_receipt_that_the_log_of_verdicts_does_not_hold_is_evidence",
        f"{AUDIT}::test_ended_log_that_has_signed_two_trees_is_evidence",
    ),
    (DESTINATION, "goes on in a log that another has succeeded"): (
        f"{AUDIT}::test_what_it_says_after_its_end_does_not_count",
    ),
    (DESTINATION, "tells people they were late"): (
        f"{AUDIT}::test_refused_as_late_in_time_is_of_the_destination_or_the_log",
    ),
    (DESTINATION, "hands in as somebody, or whoever has broken into it"): (
        "joining/test_opening.py::test_destination_elsewhere_is_told_nothing_by_which_it_hands_in",
        f"{STRANGERS}::test_who_sees_a_token_takes_none_of_its_owners_places",
    ),
    (A_WITNESS, "signs times to come, so that people are late"): (
        f"{SERVICE_CORE}::test_one_witness_that_is_ahead_makes_nobody_late_and_counts_once_it_is_due",
        f"{SERVICE_CORE}::test_nobody_waits_for_a_witness_that_is_a_year_ahead",
    ),
    (A_WITNESS, "is ahead by so little that it counts at once"): (
        (
            "log_service/test_store.py"
            "::test_an_entry_is_proved_by_the_published_checkpoint_of_the_least_time"
        ),
        f"{TIMES}::test_times_are_asked_once_more_when_they_fall_no_more_and_only_then",
    ),
    (A_SERVICE, "keeps a ticket's quota spent, or says so"): (
        f"{SERVICE_CORE}::test_what_a_ticket_has_not_signed_for_this_log_spends_nothing_of_it",
        "simulation/test_attacked_event.py::test_honest_people_beside_each_cheat_are_collected",
    ),
    (A_SERVICE, "is silent after the deadline, so that its log is not read"): (
        f"{QUOTAS}::test_a_service_that_is_silent_keeps_nobody_waiting_beyond_the_end",
        f"{QUOTAS}::test_a_service_that_is_silent_after_a_restart_takes_back_nothing",
    ),
    (A_SERVICE, "shows less of its log to an auditor than to the destination"): (
        f"{AUDIT}::test_superseded_by_what_no_log_shows_is_a_dispute_in_the_end",
    ),
    (A_SERVICE, "is silent when a bistro asks whether the deadline was moved"): (
        f"{AMENDING}::test_nobody_is_too_late_where_no_service_answers",
        f"{AMENDING}::test_a_service_that_is_silent_keeps_out_nobody_whom_another_lets_in",
    ),
    (A_SERVICE, "says that its log is longer than it is"): (
        f"{TIMES}::test_a_log_that_no_quorum_has_signed_is_not_read",
        f"{TIMES}::test_an_empty_log_and_one_that_puts_off_for_ever_hold_nobody",
    ),
    (ORGANISER, "changes the deadline for some"): (
        (
            "formats/event/test_amendments.py"
            "::test_an_amendment_is_plain_text_that_the_organiser_has_signed"
        ),
        (
            "auditor/test_audit.py"
            "::test_amendment_is_published_by_all_and_a_second_run_makes_no_second_one"
        ),
    ),
    (ORGANISER, "names another log of verdicts, so that the first one's word is forgotten"): (
        f"{AUDIT}::test_what_an_ended_log_had_proved_stands_in_the_audit",
        f"{AUDIT}::test_successor_that_refuses_what_was_collected_is_evidence",
    ),
    (ORGANISER, "swaps the keys"): (
        "formats/receipt/test_verify.py::test_a_receipt_of_another_event_is_refused",
    ),
    (A_PERSON, "sends something else than was committed to"): (
        f"{OPENING}::test_sealed_anew_the_content_decides",
        f"{TUS}::test_more_than_was_announced_and_wrong_bytes_are_refused",
    ),
    (A_PERSON, "copies somebody's sealed file"): (
        f"{OPENING}::test_a_copy_of_somebodys_sealed_file_is_refused_and_the_original_is_not",
    ),
    (A_PERSON, "begins an entry again and again, and gives up"): (
        f"{REGISTER}::test_what_began_before_hides_nothing_however_often",
        f"{CORE}::test_what_was_given_up_keeps_no_segment",
    ),
    (A_PERSON, "touches each segment with a byte, and never ends"): (
        f"{CORE}::test_who_touches_each_segment_with_a_byte_keeps_none_of_them",
        f"{KEEPING}::test_a_byte_in_each_segment_and_false_beginnings_keep_none_and_hide_nothing",
    ),
    (
        A_PERSON,
        (
            "commits more drafts in all than its ticket is good for, at several services, and "
            "pushes what suits when the answers are known"
        ),
    ): (
        f"{QUOTAS}::test_beyond_the_quota_nothing_counts_whatever_is_pushed_after_the_deadline",
        (
            "destination/run/test_quota_over_http.py"
            "::test_drafts_beyond_the_quota_are_collected_and_never_count"
        ),
    ),
    (A_PERSON, "never sends the draft that would count"): (
        f"{QUOTAS}::test_what_counts_where_the_last_draft_never_came_the_event_says",
    ),
    (A_PERSON, "marks its entry at random, or by another ticket"): (
        f"{OPENING}::test_an_entry_with_another_mark_than_its_tickets_is_refused",
        f"{QUOTAS}::test_who_marks_by_another_ticket_has_drafts_of_that_ticket",
    ),
    (A_PERSON, "brings after the end what never came"): (
        f"{QUOTAS}::test_what_never_came_comes_no_more",
    ),
    (A_PERSON, "pushes without end"): (
        f"{CORE}::test_nobody_fills_the_disk_with_one_entry",
        f"{CORE}::test_pieces_that_are_given_up_are_not_endless_either",
        f"{TUS}::test_ticket_has_as_many_uploads_as_the_event_allows",
    ),
    (A_PERSON, "cuts and begins its push again and again"): (
        f"{COSTS}::test_no_byte_is_read_back_for_pushes_that_are_cut",
        f"{COSTS}::test_each_byte_is_read_back_once_whatever_the_number_of_starts_and_cuts",
    ),
    (A_PERSON, "reserves all room, and sends nothing"): (
        f"{CORE}::test_one_ticket_does_not_reserve_all_room_without_a_byte",
        f"{CORE}::test_who_sends_nothing_gives_way_to_who_would_be_refused",
    ),
    (
        A_PERSON,
        (
            "shows another file than was handed in, a changed proof, the proof of another receipt, "
            "or one file of several as another"
        ),
    ): (
        f"{PROOF}::test_each_changed_file_is_refused",
        f"{PROOF}::test_each_flipped_byte_of_a_proof_is_refused",
        f"{PROOF}::test_a_proof_opens_no_other_receipt",
        f"{SHOWING}::test_a_proof_of_another_receipt_is_named_with_both_entries",
    ),
    (
        A_PERSON,
        (
            "seals a list of files that lies: other sizes or numbers than there are, names twice, "
            "names with `..`, a thousand million files, ten thousand empty names, "
            "more than ten thousand folders"
        ),
    ): (
        f"{FILE_LIST}::test_what_is_no_list_of_files_is_refused_by_the_library_and_by_the_page",
        f"{FILE_LIST}::test_a_body_makes_ten_thousand_folders_at_most",
        f"{FILE_SETS}::test_names_that_look_alike_make_no_more_folders_than_one_each",
        f"{FILE_LIST}::test_a_header_that_lies_is_refused_before_anything_of_the_body_is_read",
        f"{FILE_SETS}::test_a_body_that_lies_is_refused_and_nothing_of_it_stays",
    ),
    (A_PERSON, "names files so that the destination's disk takes two for one"): (
        f"{FILE_SETS}::test_safe_paths_never_collide",
        f"{FILE_SETS}::test_ten_thousand_names_that_look_alike_are_placed_soon",
    ),
    (A_PERSON, "hands in as many files as it may, with each draft"): (
        f"{FILE_SETS}::test_more_files_than_the_event_takes_are_refused",
    ),
    (SHOWN, "looks for the other files of the same draft"): (
        f"{FILE_LIST}::test_a_proof_of_one_file_shows_nothing_of_the_others",
    ),
    (SHOWN, "tests guesses of what is in the file"): (
        f"{PROOF}::test_what_a_proof_shows_tests_guesses_of_the_file_and_not_of_name_or_ticket",
        f"{SHOWING}::test_it_is_on_the_disk_for_its_owner_alone_before_anybody_is_asked",
    ),
    (
        SHOWN,
        "looks for the file's name, whose it is, or what else that person has handed in",
    ): (f"{PROOF}::test_two_proofs_of_one_person_share_nothing_and_name_neither_file_nor_ticket",),
    (THIEF, "hands in with it, by a ticket of his own or a bistro that lies"): (
        "destination/run/test_event_run.py::test_a_stolen_ticket_seals_nothing_that_another_pushes",
        f"{WISH}::test_who_was_revoked_pushes_nothing_that_a_log_held_later",
        f"{OPENING}::test_a_revoked_ticket_counts_for_what_was_committed_to_before",
    ),
    (THIEF, "logs entries with its mark, by another ticket, and never sends them"): (
        f"{QUOTAS}::test_who_has_stolen_a_ticket_spoils_nothing_after_it_was_revoked",
    ),
    (HOLDER, "puts entries into logs that look like another ticket's"): (
        f"{QUOTAS}::test_what_strangers_put_into_logs_costs_the_owner_nothing",
    ),
    (HOLDER, "repeats somebody's entries, at other services, earlier or later"): (
        f"{QUOTAS}::test_entries_by_times_that_repeat_or_lie_spend_nothing_more",
    ),
    (WITH_RECEIPT, "pushes, holds, gives up or spoils the other's entry"): (
        f"{STRANGERS}::test_nobody_but_its_owner_pushes_holds_or_spoils_an_entry",
        f"{CORE}::test_only_the_owner_of_an_entry_gives_its_upload_up",
    ),
    (
        ANYBODY,
        (
            "sends what one program reads otherwise than another: keys given twice, spaced digits, "
            "spare bits"
        ),
    ): (
        "formats/log/test_one_meaning.py::test_json_that_others_would_read_otherwise_is_none",
        "formats/log/test_one_meaning.py::test_no_reader_of_the_wing_goes_another_way",
    ),
    (ANYBODY, "repeats, cuts, reorders requests"): (
        f"{STRANGERS}::test_a_signed_request_that_comes_again_changes_nothing",
        (
            "upload_server/test_bad_input.py"
            "::test_connection_cut_at_every_so_manieth_byte_loses_nothing"
        ),
    ),
    (
        ANYBODY,
        "is late again and again, so that a bistro asks services whether the deadline was moved",
    ): (f"{AMENDING}::test_many_who_are_late_ask_services_no_oftener_than_one",),
    (
        ANYBODY,
        "opens connections, and says nothing, or promises what it never sends",
    ): (
        "http/test_connections.py::test_the_oldest_idle_one_of_whoever_has_most_gives_way",
        "test_crowds.py::test_honest_people_end_beside_a_crowd_at_a_bistro",
        "test_crowds.py::test_honest_people_are_timestamped_beside_a_crowd",
    ),
    (ANYBODY, "begins uploads without end"): (
        f"{COSTS}::test_uploads_that_no_ticket_has_signed_count_for_their_address",
        f"{CORE}::test_what_anybody_may_ask_for_costs_as_much_however_many_there_are",
    ),
    (ANYBODY, "begins uploads at an open event, from many addresses, and ends none"): (
        f"{CORE}::test_of_too_many_that_are_under_way_who_was_silent_longest_gives_way",
    ),
    (ANYBODY, "fills a bistro"): (
        f"{TUS}::test_full_bistro_names_the_others",
        f"{TUS}::test_others_tokens_and_proofs_do_not_count",
    ),
    (SERVER, "changes the script, for one person or all"): (
        f"{PAGE_FILES}::test_a_page_that_is_served_is_compared_and_so_are_its_headers",
    ),
    (ON_THE_WAY, "changes the page"): (
        f"{PAGE_FILES}::test_a_page_holds_its_event_byte_by_byte_and_the_hashes_of_what_it_loads",
    ),
    (OTHER_PAGE, "frames it, and has people press what they do not see"): (
        f"{PAGE_FILES}::test_each_header_is_compared_with_the_one_that_is_demanded",
    ),
    (OTHER_PAGE, "opens it with a ticket of its own in the link"): (
        f"{BROWSER}::test_a_ticket_comes_with_the_link_and_does_not_stay_in_the_address",
    ),
    (ANSWERING, "answers text that is meant to become code"): (
        f"{PAGE_FILES}::test_the_script_makes_no_code_of_texts_and_needs_no_webassembly",
    ),
    (BESIDE, "reads what the browser keeps"): (
        f"{BROWSER}::test_what_is_removed_leaves_no_key_behind",
    ),
    (SAME_NAME, "read what the browser keeps"): BY_BROWSERS,
}


def lines_of_page() -> Iterator[tuple[str, str]]:
    """Yield who tries what: a row without a name is of who stands above."""
    who = ""
    for row in re.findall(r"^\| (.*) \|$", PAGE.read_text(), re.MULTILINE):
        name, tries, _ = re.split(r" ?\| ", row, maxsplit=2)
        who = name.strip() or who
        if who != "who":
            yield who, tries.strip()


@functools.cache
def names_of_tests(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef))


def test_each_line_of_the_page_is_tried_by_a_test():
    rows = [*lines_of_page()]
    assert len(rows) == len({*rows}) > 60
    assert {*rows} == TRIED.keys()


@pytest.mark.parametrize("line", TRIED, ids=" ".join)
def test_the_tests_that_try_a_line_are_there(line):
    assert TRIED[line] or line[0] == SAME_NAME
    for each in TRIED[line]:
        file, name = each.split("::")
        assert name in names_of_tests(file), each
