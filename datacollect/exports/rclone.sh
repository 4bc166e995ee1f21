# ---- rclone: remotes and credentials are in its configuration, options in variables RCLONE_… ---------

command=rclone
needs=1.56.0
remedy='Debian, Ubuntu: apt install rclone'
version() { rclone version | awk 'NR == 1 { print substr($2, 2) }'; }

# is_http: whether the address is of a remote of the type http; of each remote that is asked once.
# Newer versions put a description behind the type, and write names in lowercase that variables define.
remote=
is_http() {
    if [ -z "$remote" ] || [ "${address#"$remote"}" = "$address" ]; then
        remote=${address%%[,:]*}: remote_kind=local
        case $address in
        :*) remote_kind=${address#:} && remote_kind=${remote_kind%%[,:]*} && remote=:$remote_kind ;;
        /* | ./*) remote=/ ;;
        *) remote_kind=$(rclone listremotes --long | REMOTE=$remote awk '
            index($0, ENVIRON["REMOTE"]) == 1 || kind == "" && index(tolower($0), tolower(ENVIRON["REMOTE"])) == 1 {
                split(substr($0, length(ENVIRON["REMOTE"]) + 1), word)
                kind = word[1]
            }
            END { print kind }') ;;
        esac
    fi
    [ "$remote_kind" = http ]
}
# part_of BYTES ADDRESS OPTION...: writes a range. --no-traverse: the file alone is asked for, no
# listing of its folder, which web servers often do not give; of these, by one GET and no HEAD.
part_of() {
    most=$1 where=$2
    shift 2
    run "$most" rclone cat --no-traverse --http-no-head --retries 1 --low-level-retries 1 \
        --contimeout "${connect_s}s" --timeout "${idle_s}s" "$@" -- "$where"
}
stat_of() {
    rclone lsjson --stat --retries 1 --low-level-retries 1 --contimeout "${connect_s}s" --timeout "${idle_s}s" -- "$address"
}

# Of web servers the answer is judged. Others say what the file is before and after; a server that
# knows no ranges is found out by the length of what comes from the last byte on.
fetch() {
    set -- --bwlimit "${rate}B" --offset $((offset + there)) --count $((bytes - there))
    if is_http; then
        # What it says before it has opened its log goes there, too.
        part_of $((bytes - there)) "$address" --dump headers --log-file "$head" "$@" >"$new" 2>>"$head"
        return
    fi
    stat_of >"$head" || return
    if [ -z "$ready" ] && [ $((offset + there)) -gt 0 ] && [ ! -e "$whole.datacollect-version" ] &&
        [ "$(part_of 65536 "$address" --offset $((size - 1)) 2>/dev/null | head -c 2 | wc -c)" -ne 1 ]; then
        whole_only=yes
        return 1
    fi
    part_of $((bytes - there)) "$address" "$@" >"$new"
}
# Of web servers the log has headers; of others is said what the file is before it is asked for.
has_answered() { grep -qs -e 'HTTP RESPONSE' -e '"Size"' "$1.head"; }
judge() {
    if is_http; then
        # 1 is what it ends with where an answer was cut short, as 18 is for curl; a head may have 10 MiB.
        same=$(($1 == 1 ? 18 : $1))
        ! grep -q 'response headers exceeded' "$head" || same=27
        judge_http "$same" "$1"
        return
    fi
    why=$(in_words "$1")
    case $1 in
    3 | 4) never=yes why='it is not there' ;;
    2 | 6 | 7) never=yes ;;
    0) ;;
    *) [ "$length" -gt 0 ] || judge_words ;;
    esac
    case $1 in 0 | 1) ;; *) [ "$1" -gt 128 ] || return 1 ;; esac
    [ -z "$whole_only" ] || { why='its server knows no byte ranges' && return 1; }
    [ "$length" -gt 0 ] || return 1
    [ -z "$ready" ] || return 0
    if ! grep -q "^.\"Size\": $size,\$" "$head"; then
        never=yes why="its size is not $size bytes any more, for which the plan was made"
        return 1
    fi
    same_version "$(tr -d '\n' <"$head")" && same_version "$(stat_of | tr -d '\n')"
}
text() { part_of 512 "$1" --count 512 >"$2"; }
# 3 and 4 are what it ends with where other remotes have no such folder or file.
is_not_there() {
    if is_http; then
        grep -q 'HTTP Error: 404' "$told" && shown='answers 404 for'
    else
        case $1 in 3 | 4) shown='says that there is no' ;; *) false ;; esac
    fi
}
