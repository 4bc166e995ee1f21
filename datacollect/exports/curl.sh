# ---- curl: credentials are in ~/.netrc, further options in ~/.curlrc --------------------------------

command=curl
remedy='Debian, Ubuntu: apt install curl'

# A server that ignores ranges would send more than is wanted: --max-filesize refuses that.
fetch() {
    run curl --fail --silent --show-error --location --globoff --connect-timeout 20 \
        --speed-time 120 --speed-limit 1 --limit-rate "$rate" --max-filesize $((bytes - there)) \
        --range $((offset + there))-$((offset + bytes - 1)) --url "$address" >>"$part"
}
is_there() { run curl --fail --silent --location --globoff --connect-timeout 20 --max-time 60 --output /dev/null --url "$1" 2>/dev/null; }
