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

# stop: ends a lane; what has come meanwhile is judged at once
stop() {
    trap '' TERM
    end
    [ ! -s "${at-}" ] || keep 143
    exit 143
}
# interrupt: ends all lanes, and who tells of them
interrupt() {
    trap '' INT TERM HUP # once is enough
    : >.datacollect/over
    # shellcheck disable=SC2086 # one word each
    end $pids $teller
    rm -f .datacollect/over
    say 'interrupted; the same command continues'
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
            is_stopped || "lane_$lane"
            code=$?
            leave_times
            rm -f ".datacollect/lane-$lane"
            exit "$code"
        ) &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || failed=1; done
    settled=${!-} pids=
    # Where files are to be complete, they tell: one lane may have fetched what another waited for.
    [ "$partial" = . ] || failed=0
    files || failed=1
    return "$failed"
}
# need_tools: ends where something is missing that all needs
need_tools() {
    for tool in awk dd cut find sleep; do
        command -v "$tool" >/dev/null || leave 3 "$tool is not installed; install it, or name its folder in PATH"
    done
    command -v "$command" >/dev/null || leave 3 "$command is not installed; $remedy"
    dd if=/dev/null of=/dev/null bs=1 seek=0 iflag=skip_bytes,count_bytes oflag=seek_bytes status=none 2>/dev/null ||
        leave 3 "dd must know oflag=seek_bytes; install GNU coreutils"
    summer=sha256sum
    command -v sha256sum >/dev/null || summer='shasum -a 256'
    at_least "$needs" "$(version)" || leave 3 "$command $(version) is too old, $needs is needed; $remedy"
}
# is_whole VALUE, is_number VALUE: as shells count; 08 would be octal
is_whole() { case $1 in '' | *[!0-9]* | 0[0-9]*) return 1 ;; esac }
is_number() { case $1 in '' | . | *[!0-9.]* | *.*.*) return 1 ;; esac }
# need_settings: ends where the environment sets a value with which the script cannot count
need_settings() {
    is_whole "$patience_s" || leave 2 "DATACOLLECT_PATIENCE_S must be whole seconds, such as 3600, got $patience_s"
    is_whole "$most_tries" && [ "$most_tries" -gt 0 ] ||
        leave 2 "DATACOLLECT_TRIES must be a whole number above 0, such as 20, got $most_tries"
    is_number "$every_s" || leave 2 "DATACOLLECT_EVERY_S must be seconds, such as 5 or 0.5, got $every_s"
    is_number "$say_s" || leave 2 "DATACOLLECT_SAY_S must be seconds, such as 60, got $say_s"
    is_whole "${DATACOLLECT_START:-0}" ||
        leave 2 "DATACOLLECT_START must be whole seconds since 1970, as date +%s prints them, got $DATACOLLECT_START"
}
# begin: takes the folder, and the instant at which the plan has started
begin() {
    # Whoever outlives an earlier start still holds the lock: two must not write one part.
    if command -v flock >/dev/null; then
        exec 9>.datacollect/lock
        flock -n 9 || leave 1 "another start is still at work in this folder; wait until it has ended"
    fi
    mkdir -p "$partial" && printf '%s\n' "$about" >.datacollect/export.json || leave 3 "cannot write here"
    is_again=yes
    if [ "$(cat .datacollect/plan 2>/dev/null)" != "$plan" ]; then
        is_again=''
        printf '%s\n' "${DATACOLLECT_START:-$(date +%s)}" >.datacollect/started &&
            printf '%s\n' "$plan" >.datacollect/plan || leave 3 "cannot write here"
    fi
    started=$(cat .datacollect/started) start=$(date +%s)-$$
    rm -f .datacollect/again .datacollect/over .datacollect/times .datacollect/lane-* .datacollect/waits-* .datacollect/lacks-*
    forget_given_up
}
# close_up CODE WORDS: says how long it took, and leaves
close_up() {
    # Waited for: a line that it is at would leave its file behind.
    kill "$teller" 2>/dev/null && wait "$teller"
    [ "$1" -ne 0 ] || how_long
    rm -f .datacollect/pace .datacollect/times .datacollect/waits-* .datacollect/lacks-*
    leave "$1" "$2"
}
# read_words WORD...: sets is_dry and folder; what a script does not know it must not begin to fetch with
read_words() {
    is_dry='' folder=''
    for word; do
        case $word in
        --dry-run) is_dry=yes ;;
        -*) leave 2 "there is no option $word, only --dry-run; a folder of that name is ./$word" ;;
        *) [ -z "$folder" ] || leave 2 "one folder is expected, not $folder and $word" && folder=$word ;;
        esac
    done
    folder=${folder:-.}
}
main() {
    read_words "$@"
    need_settings
    unset CDPATH
    # In bash, too, ulimit counts 512 bytes.
    # shellcheck disable=SC3040 # bash knows it
    [ -z "${BASH_VERSION-}" ] || set -o posix
    if [ -n "$is_dry" ]; then
        [ ! -d "$folder" ] || cd "$folder" || leave 2 "cannot look into $folder"
        need_tools
        would_do
        exit
    fi
    mkdir -p "$folder/.datacollect" && cd "$folder" || leave 2 "cannot work in $folder"
    need_tools
    begin
    pids='' teller=''
    trap interrupt INT TERM HUP
    tell_now_and_then 9>&- &
    teller=$!
    held && lacking=0 || lacking=1
    # What was given up is fetched once more.
    pass || { rm .datacollect/again 2>/dev/null && pass; } || lacking=1
    [ "$lacking" -eq 0 ] || close_up 1 "something is missing; the same command continues"
    close_up 0 'done'
}
