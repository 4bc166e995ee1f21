# ---- What all scripts do, whatever the tool ------------------------------------------------------

say() { printf '%s: %s\n' "$host" "$*" >&2; }
leave() {
    say "$2"
    exit "$1"
}

# wait_until SECONDS from the plan's start
wait_until() {
    left=$(($1 - $(date +%s) + started))
    [ "$left" -le 0 ] || pause "$left"
}

# at_least NEEDED FOUND: of versions
at_least() {
    printf '%s.0.0\n' "$1" "$2" | awk -F '[^0-9]+' 'NR == 1 { a = $1; b = $2; c = $3 }
        NR == 2 { exit !($1 > a || $1 == a && ($2 > b || $2 == b && $3 >= c)) }'
}

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
    fi
    # Where $at is, $head is: a start may be killed between any two.
    rm -f "$at" && rm -f "$new" "$head"
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
# await: until the relay's mark says that it has the piece; what else it answers is no mark
await() {
    enough=$(($(date +%s) + patience_s))
    while :; do
        : >"$mark.ready" && text "$ready" "$mark.ready"
        expected=$(sed -n "1s|^datacollect-piece/1 $offset $bytes \\([0-9a-f]\\{64\\}\\)\$|\\1|p" "$mark.ready")
        [ -z "$expected" ] || return 0
        ! has_come || return 1
        [ "$(date +%s)" -le "$enough" ] || break
        pause "$every_s"
    done
    say "gave up after $patience_s s: its relay does not have $ready"
    return 1
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
    whole=$partial/$file expected='' why='' never='' whole_only='' wait_s='' is_stale='' tries=0 spent=0
    name_piece
    ! has_come || return 0
    wait_until "$1"
    mkdir -p "${whole%/*}" || return 1
    [ -z "$ready" ] || await || { has_come; return; }
    there=$(bytes_of "$part")
    # What a killed start has left.
    if [ -s "$at" ]; then
        keep 137 || return 1
        never='' whole_only='' is_stale='' spent=0
    fi
    until is_proved; do
        if [ -n "$never" ] || [ "$tries" -ge "$most_tries" ] || [ "$spent" -gt "$bytes" ]; then
            say "gave up after $tries tries: $address: $why"
            [ -z "$is_stale" ] || begin_anew
            return 1
        fi
        [ "$tries" -eq 0 ] || pause "${wait_s:-$every_s}"
        # Another lane may have fetched the whole file, and moved it to its place.
        ! has_come || return 0
        tries=$((tries + 1)) never='' whole_only='' wait_s='' is_stale=''
        (umask 077 && : >"$head") && printf '%s\n' "$there" >"$at" || return 1
        fetch
        keep "$?" || return 1
        [ "${wait_s:-0}" -le "$patience_s" ] || never=yes why="$why, and asks to wait for $wait_s s"
        [ -z "$whole_only" ] || take_whole || return 0
    done
    if [ "$bytes" -eq "$size" ]; then synced "$part" && mv -f "$part" "$whole"; else put_in "$part" "$whole" "$offset"; fi &&
        write_mark "$sum" && rm -rf "$part" "$mark.ready" "$mark.tmp"
}
# stop: ends a lane; what has come meanwhile is judged at once
stop() {
    end
    [ ! -s "${at-}" ] || keep 143
    exit 143
}
# interrupt: ends all lanes
interrupt() {
    : >.datacollect/over
    # shellcheck disable=SC2086 # one word each
    end $pids
    rm -f .datacollect/over
    say 'interrupted; the same command goes on'
    exit 130
}
# pass: all lanes side by side, then all files
pass() {
    failed=0 pids=
    find "$partial" -depth -type d \( -name '*.datacollect-lock' -o -name '*.datacollect-all' \) -exec rmdir {} +
    give_up_stale
    for lane in $lanes; do
        (
            settled=${!-}
            trap stop TERM
            trap '' INT HUP
            is_over || "lane_$lane"
        ) &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || failed=1; done
    settled=${!-}
    # Where files are to be complete, they tell: one lane may have fetched what another waited for.
    [ "$partial" = . ] || failed=0
    files || failed=1
    return "$failed"
}
main() {
    case $1 in -*) set -- "./$1" ;; esac
    unset CDPATH
    # In bash, too, ulimit counts 512 bytes.
    # shellcheck disable=SC3040 # bash knows it
    [ -z "${BASH_VERSION-}" ] || set -o posix
    mkdir -p "$1/.datacollect" && cd "$1" || leave 2 "cannot work in $1"
    for tool in awk dd cut find sleep "$command"; do
        command -v "$tool" >/dev/null || leave 3 "$tool is not installed; $remedy"
    done
    dd if=/dev/null of=/dev/null bs=1 seek=0 iflag=skip_bytes,count_bytes oflag=seek_bytes status=none 2>/dev/null ||
        leave 3 "dd must know oflag=seek_bytes; install GNU coreutils"
    summer=sha256sum
    command -v sha256sum >/dev/null || summer='shasum -a 256'
    at_least "$needs" "$(version)" || leave 3 "$command $(version) is too old, $needs is needed; $remedy"
    # Whoever outlives an earlier start still holds the lock: two must not write one part.
    if command -v flock >/dev/null; then
        exec 9>.datacollect/lock
        flock -n 9 || leave 1 "another start is still at work in this folder; wait until it has ended"
    fi
    if grep -q datacollect-export/1 .datacollect/export.json 2>/dev/null; then
        say 'an earlier version left no proof of what it fetched: what is not complete is given up'
        find "$partial" -depth -name '*.datacollect-*' -exec rm -rf {} +
    fi
    mkdir -p "$partial" && printf '%s\n' "$about" >.datacollect/export.json || leave 3 "cannot write here"
    if [ "$(cat .datacollect/plan 2>/dev/null)" != "$plan" ]; then
        printf '%s\n' "${DATACOLLECT_START:-$(date +%s)}" >.datacollect/started &&
            printf '%s\n' "$plan" >.datacollect/plan || leave 3 "cannot write here"
    fi
    started=$(cat .datacollect/started) start=$(date +%s)-$$
    rm -f .datacollect/again .datacollect/over
    pids=
    trap interrupt INT TERM HUP
    held && lacking=0 || lacking=1
    # What was given up is fetched once more.
    pass || { rm .datacollect/again 2>/dev/null && pass; } || lacking=1
    [ "$lacking" -eq 0 ] || leave 1 "something is missing; the same command goes on"
    say 'done'
}
