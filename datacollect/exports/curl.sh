# ---- curl: credentials are in ~/.netrc, further options in the file that DATACOLLECT_CURL_OPTIONS names

command=curl
needs=7.61.0
remedy='Debian, Ubuntu: apt install curl'
version() { curl --version | awk 'NR == 1 { print $2 }'; }

# ask BYTES ADDRESS OPTION...: nothing is inherited from ~/.curlrc; https is never led on to http.
ask() {
    most=$1 url=$2
    shift 2
    case $url in https:*) allowed='=https' ;; file:*) allowed='=file' ;; *) allowed='=http,https' ;; esac
    run "$most" curl --disable ${DATACOLLECT_CURL_OPTIONS:+--config "$DATACOLLECT_CURL_OPTIONS"} --netrc-optional \
        --proto "$allowed" --proto-redir "$allowed" --location --max-redirs 20 --globoff --fail --silent --show-error \
        --connect-timeout "$connect_s" "$@" --url "$url"
}
fetch() {
    most=$((bytes - there))
    set --
    if [ "$most" -lt "$size" ]; then
        set -- --range "$((offset + there))-$((offset + bytes - 1))"
        # A file that has changed comes whole, which --max-filesize ends before its first byte.
        etag=$(first_version | sed -n 's/^ETag //p')
        [ -z "$etag" ] || [ -n "$ready" ] || set -- "$@" --header "If-Range: $etag"
    fi
    # Bodies of redirects count for --max-filesize, too.
    ask "$most" "$address" --output "$new" --dump-header "$head" --speed-time "$idle_s" --speed-limit 1 \
        --limit-rate "$rate" --max-filesize $((most > 65536 ? most : 65536)) "$@"
}
# has_answered PATH: whether anything has come of what is written to files of this name
has_answered() { [ -s "$1.head" ]; }
judge() { judge_http "$1"; }
text() { ask 512 "$1" --max-time 60 --max-filesize 65536 --output "$2"; }
is_not_there() { grep -q 'returned error: 404' "$told" && shown='answers 404 for'; }
