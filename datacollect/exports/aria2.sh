# ---- aria2: credentials are in ~/.netrc, options in the file that DATACOLLECT_ARIA2_CONF names -------

command=aria2c
needs=1.34.0
remedy='Debian, Ubuntu: apt install aria2'
version() { aria2c --version | awk 'NR == 1 { print $3 }'; }

# load BYTES RATE ADDRESS FOLDER OPTION...: fetches FOLDER/data. aria2 works there, since it reads
# options out of names with line breaks. One answer from its first byte, or what SHA-256 proves.
load() {
    most=$1 limit=$2 url=$3 folder=$4
    shift 4
    if [ -n "${DATACOLLECT_ARIA2_CONF-}" ]; then set -- "--conf-path=$DATACOLLECT_ARIA2_CONF" "$@"; else set -- --no-conf=true "$@"; fi
    mkdir -p "$folder" || return
    # aria2 keeps a head in memory, however long it is: of that it gets, in KiB, what it needs else.
    # shellcheck disable=SC2016 # the inner shell's own variables
    run "$most" sh -c '{ ulimit -c 0 && ulimit -d "$1"; } 2>/dev/null; cd "$0" && shift && exec "$@"' "$folder" \
        $((16384 + most / 67108864)) aria2c "$@" --quiet --log=log.aria2 --log-level=info \
        --allow-overwrite=true --auto-file-renaming=false --allow-piece-length-change=true --file-allocation=none \
        --disk-cache=0 --max-tries=1 --connect-timeout="$connect_s" --timeout="$idle_s" --split=1 \
        --max-connection-per-server=1 --follow-torrent=false --follow-metalink=false --remote-time=false \
        --http-accept-gzip=false --max-download-limit="$limit" --dir=. --out=data -- "$url"
}
fetch() {
    # Without its control file, which it writes seldom, aria2 goes on from the length of the data:
    # one connection writes them from the first byte on, without a cache.
    rm -f "$mark.tmp/log.aria2" "$mark.tmp/data.aria2"
    if [ -n "$hash" ]; then
        set -- --continue=true "--checksum=sha-256=$hash"
    else
        spent=$((spent + $(bytes_of "$mark.tmp/data")))
        rm -rf "$mark.tmp"
        set -- --continue=false
    fi
    load "$bytes" "$rate" "$address" "$mark.tmp" "$@"
    [ "$code" -ne 0 ] || mv -f "$mark.tmp/data" "$new"
    mv -f "$mark.tmp/log.aria2" "$head" 2>/dev/null
    # Nothing to go on with: 32, the SHA-256 is another one; 1 and 8, it does not fit what the server
    # says now; or it is too long.
    if [ "$code" -eq 32 ] || [ "$code" -eq 1 ] || [ "$code" -eq 8 ] || [ "$(bytes_of "$mark.tmp/data")" -gt "$bytes" ]; then
        spent=$((spent + $(bytes_of "$mark.tmp/data")))
        rm -rf "$mark.tmp"
    fi
    return "$code"
}
# aria2 logs 2 KiB of an answer's headers (fmt.cc): of others it is known that it took the answer for whole.
cuts=yes
has_answered() { grep -qs 'Response received' "$1.tmp/log.aria2"; }
# What aria2 has ended well lies in $new.
judge() {
    if [ -n "$hash" ] && [ "$length" -eq "$bytes" ]; then return 0; fi
    # 134: no memory was left; 19: the name is not known; 28: an option of the user's is wrong.
    case $1 in 134) same=27 ;; 19) same=6 ;; 28) same=2 ;; *) same=22 ;; esac
    if [ "$length" -gt 0 ]; then judge_http 0; else judge_http "$same" "$1"; fi
}
text() { load 512 0 "$1" "$2.tmp" --continue=false && mv -f "$2.tmp/data" "$2" && rm -rf "$2.tmp"; }
is_not_there() { [ "$1" -eq 3 ] && shown='answers 404 for'; }
