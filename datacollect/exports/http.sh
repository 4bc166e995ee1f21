# ---- HTTP: what an answer's headers prove ---------------------------------------------------------

# judge_http CODE [ITS_OWN]: whether the bytes in $new, of the answer whose headers are in $head, are the piece's.
# CODE is curl's, or the one of its that means the same as the tool's.
# An ETag that is strong, or else Last-Modified, must be that of the file's first bytes; of a relay's
# answers it changes with each piece that comes there, and the relay's mark proves the bytes.
judge_http() {
    [ "$1" -eq 0 ] || ending=$(in_words "${2:-$1}")
    verdict=$(NAME=$file FIRST=$(first_version) EXIT="${ending-}" LC_ALL=C awk -v relayed="${ready:+1}" \
        -v begin=$((offset + from)) -v end=$((offset + bytes - 1)) -v size="$size" -v came="$length" \
        -v code="$1" -v patience_s="$patience_s" -v documents="$documents" -v cuts="${cuts-}" -v all=$((from == 0 && bytes == size)) "$http_rules" "$head")
    read -r kind wait_s text <<END
$verdict
END
    [ "$wait_s" != 0 ] || wait_s=
    if [ "$kind" = keep ]; then
        [ -n "$ready" ] || same_version "$text"
        return
    fi
    why=$text
    case $kind in
    whole) whole_only=yes ;;
    never) never=yes ;;
    stale) is_stale=yes ;;
    silent) is_silent=yes ;;
    nobody) is_silent=yes never=yes ;;
    esac
    return 1
}

# shellcheck disable=SC2016 # awk's own variables
http_rules='
function answer(kind, wait_s, text) {
    if (ended) return
    gsub(/[^ -~]/, "?", text)
    print kind, wait_s, substr(text, 1, 400)
    ended = 1
}
BEGIN { get = 1 }
# In logs of tools.
/ ERROR : |Failed to | errorCode=[0-9]+ / { words = $0; sub(/^[0-9\/]+ [0-9:]+ /, "", words); sub(/^.* errorCode=[0-9]+ /, "", words); words = ": " words }
# A log that cuts long texts goes on after what it shows of the headers; the last line may be a part of one.
cuts && open && /^[0-9]+-[0-9]+-[0-9]+ [0-9:.]+ \[[A-Z]+\] / { complete = cut = 1; open = 0; if (tail != "") delete field[tail] }
# So do headers of file:// begin.
NR == 1 && /^Content-Length:/ { status = "file"; open = 1 }
{ n_head += length($0) + 1; sub(/\r$/, ""); sub(/^[0-9\/]+ [0-9:]+ DEBUG : /, "") }
/^[A-Z]+ [^ ]+ HTTP\// { get = /^GET /; next }
/^HTTP\/[0-9.]+ [0-9]+/ && get {
    if (status ~ /^3/) moved = 1
    status = $2; open = 1; complete = cut = 0; tail = twice = ""
    split("", field)
    next
}
/^$/ { if (open) complete = 1; open = 0 }
open { tail = "" }
open && (colon = index($0, ":")) > 1 {
    name = tolower(substr($0, 1, colon - 1)); value = substr($0, colon + 1)
    gsub(/^[ \t]+|[ \t]+$/, "", value)
    if (name in field && field[name] != value) twice = name
    field[tail = name] = value
}
END {
    range = tolower(field["content-range"]); n_bytes = field["content-length"]; coding = tolower(field["content-encoding"])
    total = range; sub(/^.*\//, "", total)
    changed = " bytes by now, the plan was made for " size
    # curl ends so at the Content-Length that --max-filesize forbids, which is no whole head.
    if (code == 63 && status == 200 && n_bytes == size && ENVIRON["FIRST"] != "")
        answer("stale", 0, "the file has changed at its server since its first bytes came, or it knows no byte ranges")
    # 27 and 100 are what curl ends with at a long line, in its versions.
    if (!complete && (code ~ /^(27|100)$/ || n_head > 65536))
        answer("never", 0, "its server sends headers without end; " ENVIRON["EXIT"])
    # What curl ends with where an address, a name, a certificate or an option is wrong.
    if (!complete && (code ~ /^(1|2|3|6|58|59|60|66|77|83|90)$/ || words ~ /no such host|x509: |issuer certificate|signed certificate/))
        answer("nobody", 0, ENVIRON["EXIT"] words)
    if (!complete && code != 63) answer("silent", 0, "no whole answer; " ENVIRON["EXIT"] words)
    if (status == 429 || status == 503) {
        wait_s = field["retry-after"]
        # A date is no number: the clocks of both may differ.
        if (wait_s !~ /^[0-9]+$/) wait_s = wait_s == "" ? 0 : patience_s < 60 ? patience_s : 60
        answer("again", length(wait_s) > 9 ? 999999999 : wait_s, "status " status)
    }
    if (status == 416) {
        if (range ~ /^bytes \*\/[0-9]+$/ && total != size) answer("never", 0, "status 416: the file has " total changed)
        answer("again", 0, "status 416 for a range that the file has")
    }
    if (status ~ /^5/ || status == 408 || status == 425) answer("again", 0, "status " status)
    if (status != 200 && status != 206 && status != "file")
        answer("never", 0, "status " status (status == 401 || status == 403 ? ": credentials are missing, or do not suffice" : ""))
    if (twice ~ /^(content-(range|length|encoding)|etag|last-modified)$/) answer("never", 0, "two different headers " twice)
    if (coding != "" && coding != "identity")
        answer("never", 0, "Content-Encoding " coding ": these are not the bytes of the file; let its server send it without")
    if (moved && cut && !("content-type" in field))
        answer("never", 0, "a login page? The log of its headers ends before their type; give a sha256, or take curl")
    type = tolower(field["content-type"]); sub(/[ \t]*;.*$/, "", type)
    n_words = split(documents, document, " ")
    for (i = 1; moved && i < n_words; i += 2)
        if (type ~ "^(" document[i] ")$" && tolower(ENVIRON["NAME"]) !~ "(" document[i + 1] ")$")
            answer("never", 0, type " after a redirect: a login page?")
    version = "no version"
    if (field["last-modified"] != "") version = "Last-Modified " field["last-modified"]
    if (field["etag"] ~ /^"/) version = "ETag " field["etag"]
    if (status == 206) {
        if (cut && range == "") answer("again", 0, ENVIRON["EXIT"] words)
        if (range !~ /^bytes [0-9]+-[0-9]+\/([0-9]+|\*)$/) answer("whole", 0, "status 206 without a byte range in Content-Range")
        split(range, part, /[ \/-]/)
        if (!relayed && total == "*") answer("whole", 0, "its server does not say how long the file is")
        if (!relayed && total != size) answer("never", 0, "the file has " total changed)
        if (part[2] != begin || part[3] + 0 > end + 0 || part[3] + 0 < begin + 0)
            answer("whole", 0, "its server sent " range " for bytes " begin "-" end)
        if (n_bytes != "" && n_bytes != part[3] - part[2] + 1) answer("again", 0, "its Content-Length " n_bytes " contradicts " range)
        if (came > part[3] - part[2] + 1) answer("never", 0, "more came than " range)
    } else {
        if (n_bytes != "" && n_bytes != size && !relayed) answer("never", 0, "the file has " n_bytes changed)
        # So is If-Range answered, where a file has changed.
        if (status != "file" && !all && ENVIRON["FIRST"] != "" && version != ENVIRON["FIRST"] && !relayed)
            answer("keep", 0, version)
        if (status != "file" && !all) answer("whole", 0, "its server knows no byte ranges")
        if (status != "file" && n_bytes == "" && came > size) answer("never", 0, "the file is longer than " size " bytes, for which the plan was made")
        if (status != "file" && n_bytes == "" && (code != 0 || came != size))
            answer("again", 0, "an answer of no stated length ended after " came " of " size " bytes; " ENVIRON["EXIT"])
    }
    # What these exit codes cut short is right as far as it goes: curl 18, 28, 55, 56, 92, or killed.
    if (code !~ /^(0|18|28|55|56|92)$/ && code < 128) answer("again", 0, ENVIRON["EXIT"] words)
    if (came == 0) answer("again", 0, "nothing came")
    answer("keep", 0, version)
}'
