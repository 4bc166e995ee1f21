# ---- One piece: asked for, judged, appended, proved ---------------------------------------------------

# keep CODE: appends what the tool has brought, where it has evidence that this is the piece's
keep() {
    length=$(bytes_of "$new") from=$(cat "$at")
    if ! judge "$1"; then
        spent=$((spent + length))
    elif [ $((from + length)) -gt "$bytes" ]; then
        spent=$((spent + length)) never=yes why='more came than was asked for'
    elif [ "$length" -gt 0 ] && [ "$from" -le "$there" ]; then
        if [ "$from" -eq 0 ]; then mv -f "$new" "$part"; else put_in "$new" "$part" "$from"; fi || return
        # What brings data on is no failure; a few bytes at a time would never end.
        [ "$length" -lt 65536 ] || tries=1
        why=''
    fi
    # Where $at is, $head is: a start may be killed between any two.
    rm -f "$at" && rm -f "$new" "$head" "$told"
}
# is_proved: whether the piece is complete, and what its relay says that it is
is_proved() {
    there=$(bytes_of "$part")
    [ "$there" -eq "$bytes" ] && sum=$(sha256 <"$part") || return 1
    if [ -n "$ready" ] && [ "$sum" != "$expected" ]; then
        spent=$((spent + there)) there=0 why='its bytes are not what the mark of its relay says'
        rm -f "$part"
        return 1
    fi
}
# await: until the relay's mark says that it has the piece; what else it answers is no mark. Where the relay
# says twice that it gave the piece up, it is no start before the present one that has done so.
await() {
    enough=$(($(date +%s) + (silent > 0 ? 0 : patience_s))) gave_up=''
    clock
    since_cs=$now_cs
    while :; do
        waits_for "$mark.ready" "given up after $patience_s s"
        (umask 077 && : >"$told") && : >"$mark.ready" && text "$ready" "$mark.ready" 2>"$told"
        if is_not_there "$?"; then lacks "$shown $ready"; else lacks_no_more; fi
        rm -f "$told"
        waits_no_more
        expected=$(sed -n "1s|^datacollect-piece/1 $offset $bytes \\([0-9a-f]\\{64\\}\\)\$|\\1|p" "$mark.ready")
        [ -z "$expected" ] || { heard=$peer silent=0 && spend relay_cs && return; }
        ! has_come || { lacks_no_more; return 1; }
        case $gave_up$(sed -n 1p "$mark.ready") in
        "yesdatacollect-gave-up/1 $offset $bytes") give_up "gave up: its relay has given up $ready" || return ;;
        "datacollect-gave-up/1 $offset $bytes") gave_up=yes ;;
        esac
        [ "$(date +%s)" -lt "$enough" ] || break
        pause "$every_s"
    done
    spend relay_cs
    lacks_no_more
    is_silent=yes
    give_up "gave up after $patience_s s: its relay does not have $ready"
}
# take_whole: where a server knows no ranges, one lane fetches the file from its first byte
take_whole() {
    if [ "$bytes" -eq "$size" ]; then
        spent=$((spent + there))
        rm -f "$part"
    elif [ -n "$ready" ] || [ "$partial" = . ]; then
        never=yes why="$why, and relays forward ranges: let the plan send this file straight"
    elif mkdir "$whole.datacollect-all" 2>/dev/null; then
        offset=0 bytes=$size
        name_piece
        say "$file: $why; the whole file is fetched"
    else
        return 1
    fi
}
# get START_S RATE OFFSET BYTES FILE_BYTES FILE ADDRESS READY_ADDRESS SHA256: fetches a piece of a file.
# READY_ADDRESS is that of a relay's mark, empty where nothing is awaited; SHA256 is the whole file's.
get() {
    rate=$2 offset=$3 bytes=$4 size=$5 file=$6 address=$7 ready=$8 hash=$9
    whole=$partial/$file expected='' wait_s='' tries=0 spent=0
    forget_try
    name_piece
    name_peer
    ! has_come || return 0
    [ "$hopeless" != "$peer" ] || give_up "not asked for, since nothing is to be had of $peer: $address" || return
    [ "$silent" -eq 0 ] || pause "$every_s"
    at_work 'waits for its start time:'
    wait_until "$1"
    mkdir -p "${whole%/*}" || return 1
    at_work 'waits for a relay:'
    [ -z "$ready" ] || await || { has_come; return; }
    at_work 'fetches'
    there=$(bytes_of "$part")
    # What a killed start has left.
    if [ -s "$at" ]; then
        keep 137 || return 1
        forget_try
        spent=0
    fi
    until is_proved; do
        if is_over; then
            give_up "gave up after $tries tries: $address: ${why:-too little comes at a time}"
            [ -z "$is_stale" ] || begin_again
            return 1
        fi
        clock
        since_cs=$now_cs
        [ "$tries" -eq 0 ] || pause "${wait_s:-$every_s}"
        spend pause_cs
        # Another lane may have fetched the whole file, and moved it to its place.
        ! has_come || return 0
        tries=$((tries + 1)) wait_s=''
        forget_try
        (umask 077 && : >"$head" && : >"$told") && printf '%s\n' "$there" >"$at" || return 1
        waits_for "$mark" "given up after $most_tries tries"
        fetch 2>"$told"
        ended=$? asked_cs=$since_cs
        waits_no_more
        spend tool_cs
        keep "$ended" || return 1
        note_request "$length"
        [ "${wait_s:-0}" -le "$patience_s" ] || never=yes why="$why, and asks to wait for $wait_s s"
        note_peer
        [ -z "$whole_only" ] || take_whole || return 0
    done
    if [ "$bytes" -eq "$size" ]; then synced "$part" && mv -f "$part" "$whole"; else put_in "$part" "$whole" "$offset"; fi &&
        write_mark "$sum" && rm -rf "$part" "$mark.ready" "$mark.tmp"
}
