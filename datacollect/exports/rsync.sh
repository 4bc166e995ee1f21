# ---- rsync: hosts, users and keys are in ~/.ssh/config ----------------------------------------------

command=rsync
needs=3.1.0
remedy='Debian, Ubuntu: apt install rsync'
version() { rsync --version | awk 'NR == 1 { print $3 }'; }

# load BYTES KIB_PER_S ADDRESS FOLDER NAMES OPTION...: fetches FOLDER/NAME. The address is BASE/./PATH.
# Names travel through a list, where nothing is a wildcard and, behind ./, no comment. Links are
# followed: data are wanted; what leads out of a module is refused there. rsync compares what it has
# written by a hash of its own, and ends well only then.
load() {
    most=$1 limit=$2 base=${3%%/./*} path=${3#*/./} folder=$4 names=$5
    shift 5
    case ${base%%/*} in
    [Rr][Ss][Yy][Nn][Cc]: | *::*) set -- "$@" --contimeout="$connect_s" ;;
    *) [ -n "${RSYNC_RSH-}" ] || set -- "$@" --rsh="ssh -o ConnectTimeout=$connect_s" ;;
    esac
    mkdir -p "$folder" && printf './%s\0' "$path" >"$names" &&
        run "$most" rsync --quiet --copy-links --no-relative --ignore-times --no-whole-file --partial --inplace \
            --timeout="$idle_s" --from0 --files-from="$names" --bwlimit="$limit" "$@" "$base/" "$folder/"
}
# In units of 1024 bytes, rounded up.
fetch() {
    load "$bytes" $(((rate + 1023) / 1024)) "$address" "$mark.tmp" "$head" --min-size="$size" --max-size="$size" &&
        { [ ! -f "$mark.tmp/${address##*/}" ] || mv -f "$mark.tmp/${address##*/}" "$new"; }
    return "$code"
}
# It says nothing before the first byte, which it writes at once; of an earlier start some may lie there.
has_answered() { find "$1.tmp" -type f -size +0 -newer "$2" 2>/dev/null | grep -q .; }
# What rsync has ended well lies in $new.
judge() {
    [ "$length" -ne "$bytes" ] || return 0
    why=$(in_words "$1")
    case $1 in
    0) never=yes why="there is no file of $size bytes, for which the plan was made" ;;
    1 | 2 | 4 | 6 | 23) never=yes ;;
    *) judge_words ;;
    esac
    return 1
}
text() {
    load 512 0 "$1" "$2.tmp" "$2.names" --max-size=512 && mv -f "$2.tmp/${1##*/}" "$2" 2>/dev/null
    rm -rf "$2.tmp" "$2.names"
}
is_not_there() { grep -q 'No such file or directory' "$told" && shown='says that there is no'; }
