# ---- What all scripts do, whatever the tool ------------------------------------------------------

say() { printf '%s: %s\n' "$host" "$*" >&2; }

leave() {
    say "$2"
    exit "$1"
}

# What runs in the background is ended with its lane.
child=
pause() {
    sleep "$1" &
    child=$!
    wait "$child"
    child=
}
run() {
    "$@" &
    child=$!
    wait "$child"
    code=$?
    child=
    return "$code"
}

# wait_until SECONDS from the plan's start
wait_until() {
    left=$(($1 - $(date +%s) + started))
    [ "$left" -le 0 ] || pause "$left"
}

bytes_of() { if [ -f "$1" ]; then wc -c <"$1"; else echo 0; fi; }

# Of standard input.
sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c 1-64; }

# put_in PART WHOLE OFFSET: writes a part that has arrived to its place in the file
put_in() { dd if="$1" of="$2" bs=1048576 seek="$3" oflag=seek_bytes conv=notrunc status=none; }

# get START_S RATE OFFSET BYTES FILE_BYTES FILE ADDRESS READY_ADDRESS: fetches a piece of a file.
# READY_ADDRESS is there once a relay has the piece; it is empty where nothing has to be awaited.
get() {
    begin=$1 rate=$2 offset=$3 bytes=$4 size=$5 file=$6 address=$7 ready=$8
    whole=$partial/$file
    mark=$whole.datacollect-$offset-$bytes
    part=$mark.part
    if [ -e "$mark" ]; then return 0; fi
    if [ "$partial" != . ] && [ -f "./$file" ] && [ "$(bytes_of "./$file")" -eq "$size" ]; then return 0; fi
    wait_until "$begin"
    mkdir -p "${whole%/*}" || return 1
    if [ -n "$ready" ]; then
        enough=$(($(date +%s) + patience_s))
        until is_there "$ready" "$mark.ready"; do
            if [ "$(date +%s)" -gt "$enough" ]; then
                say "gave up after $patience_s s: its relay does not have $ready"
                return 1
            fi
            pause "$every_s"
        done
    fi
    tries=0
    while there=$(bytes_of "$part") && [ "$there" -ne "$bytes" ]; do
        [ "$there" -lt "$bytes" ] || rm -f "$part"
        if [ "$tries" -ge "$most_tries" ]; then
            say "gave up after $tries tries: $address"
            return 1
        fi
        [ "$tries" -eq 0 ] || pause "$every_s"
        tries=$((tries + 1))
        there=$(bytes_of "$part")
        fetch
        # What brings data on is no failure.
        [ "$(bytes_of "$part")" -le "$there" ] || tries=1
    done
    if [ "$bytes" -eq "$size" ]; then mv -f "$part" "$whole"; else put_in "$part" "$whole" "$offset"; fi &&
        printf 'ok\n' >"$mark" && rm -f "$part"
}

# have OFFSET BYTES FILE: says that this relay has what others will ask for
have() {
    if [ "$(bytes_of "$partial/$3")" -lt $(($1 + $2)) ]; then
        say "the plan has $3 forwarded from here, but it is not there: make a new plan from what is"
        return 1
    fi
    printf 'ok\n' >"$partial/$3.datacollect-$1-$2"
}

# finish BYTES SHA256 FILE OFFSET-BYTES...: moves a file to its place once all of it is there
finish() {
    size=$1 hash=$2 file=$3
    shift 3
    whole=$partial/$file
    if [ -f "./$file" ] && [ "$(bytes_of "./$file")" -eq "$size" ]; then return 0; fi
    for range in "$@"; do
        [ -e "$whole.datacollect-$range" ] || return 1
    done
    mkdir -p "${whole%/*}" && mkdir "$whole.datacollect-lock" 2>/dev/null || return 1
    [ "$size" -gt 0 ] || : >"$whole"
    got=$(bytes_of "$whole")
    if [ "$got" -ne "$size" ]; then
        say "$file: has $got bytes, not $size"
    elif [ -n "$hash" ] && [ "$(sha256 <"$whole")" != "$hash" ]; then
        say "$file: its SHA-256 is not $hash; start again, or make a new plan from what is there"
        rm -f "$whole" "$whole.datacollect-"[0-9]*
    else
        place=./$file
        mkdir -p "${place%/*}" && mv -f "$whole" "$place" && rm -f "$whole.datacollect-"[0-9]*
    fi
    rmdir "$whole.datacollect-lock"
    [ -f "./$file" ]
}

# Parts that an earlier plan had begun count as pieces of their own: new plans ask for the rest.
absorb() {
    # shellcheck disable=SC2016 # the inner shell's own variables
    find "$partial" -type f -name '*.datacollect-*.part' -exec sh -c '
        for part do
            range=${part##*.datacollect-}
            offset=${range%%-*}
            whole=${part%.datacollect-*}
            there=$(($(wc -c <"$part")))
            [ "$there" -eq 0 ] ||
                dd if="$part" of="$whole" bs=1048576 seek="$offset" oflag=seek_bytes conv=notrunc status=none &&
                printf "ok\n" >"$whole.datacollect-$offset-$there" || exit 1
            rm -f "$part"
        done' sh {} +
}

main() {
    case $1 in -*) set -- "./$1" ;; esac
    unset CDPATH
    mkdir -p "$1/.datacollect" && cd "$1" || leave 2 "cannot work in $1"
    for tool in dd cut find sleep "$command"; do
        command -v "$tool" >/dev/null || leave 3 "$tool is not installed; $remedy"
    done
    dd if=/dev/null of=/dev/null bs=1 seek=0 oflag=seek_bytes status=none 2>/dev/null ||
        leave 3 "dd must know oflag=seek_bytes; install GNU coreutils"
    # Whoever outlives an earlier start still holds the lock: two must not write one part.
    if command -v flock >/dev/null; then
        exec 9>.datacollect/lock
        flock -n 9 || leave 1 "another start is still at work in this folder; wait until it has ended"
    fi
    mkdir -p "$partial" && printf '%s\n' "$about" >.datacollect/export.json ||
        leave 3 "cannot write here"
    find "$partial" -depth -type d -name '*.datacollect-lock' -exec rmdir {} +
    if [ "$(cat .datacollect/plan 2>/dev/null)" != "$plan" ]; then
        absorb && printf '%s\n' "${DATACOLLECT_START:-$(date +%s)}" >.datacollect/started &&
            printf '%s\n' "$plan" >.datacollect/plan || leave 3 "cannot write here"
    fi
    started=$(cat .datacollect/started)
    failed=0 pids=
    held || failed=1
    trap 'kill $pids 2>/dev/null; wait; say "interrupted; the same command goes on"; exit 130' INT TERM HUP
    for lane in $lanes; do
        (
            trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit 143' TERM
            trap '' INT HUP
            "lane_$lane"
        ) &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || failed=1; done
    files || failed=1
    [ "$failed" -eq 0 ] || leave 1 "something is missing; the same command goes on"
    say 'done'
}
