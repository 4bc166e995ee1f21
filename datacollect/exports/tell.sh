# ---- What is said: who is silent; how far it is, once a minute; what is to do; how long it took, and why

# clock: sets now_cs, in hundredths of a second; without another process where Linux tells
clock() {
    if read -r now _ 2>/dev/null </proc/uptime; then now_cs=${now%.*}${now#*.}; else now_cs=$(date +%s)00; fi
}
# So long may a relay's server say that a mark is not there before that is told.
most_lacking_s=60
# shellcheck disable=SC2016 # awk's own variables
words='
function short(x) { return sprintf(x < 10 ? "%.1f" : "%.0f", x) }
function scaled(x, unit,   i, n, names) {
    n = split("k M G T P", names, " ")
    for (i = 0; x >= 999.5 && i < n; i++) x /= 1000
    return (i ? short(x) : sprintf("%d", x)) " " names[i] unit
}
function lasts(s) {
    if (s < 1) return "less than 1 s"
    if (s < 60) return short(s) " s"
    if (s < 3600) return short(s / 60) " min"
    return s < 172800 ? short(s / 3600) " h" : short(s / 86400) " days"
}'
# survey: runs all lanes with a `get` that fetches nothing: prints of each piece its bytes, what of them is here,
# its start and whom it is asked of; in the end how many files are here, and how many there are
survey() (
    get() {
        start_s=$1 offset=$3 bytes=$4 size=$5 file=$6 address=$7 whole=$partial/$6 here=0
        name_piece
        name_peer
        if { [ "$partial" != . ] && [ -f "./$file" ]; } || is_mark "$mark" "$offset" "$bytes" || [ -s "$whole.datacollect-0-$size" ]; then
            here=$bytes
        else
            for begun in "$part" "$new" "$mark.tmp"/*; do [ ! -f "$begun" ] || here=$((here + $(bytes_of "$begun"))); done
        fi
        [ "$here" -le "$bytes" ] || here=$bytes
        printf '%s\t%s\t%s\t%s\n' "$bytes" "$here" "$start_s" "$peer"
        return 1
    }
    for lane in $lanes; do "lane_$lane"; done
    n_files=0 n_here=0
    finish() {
        n_files=$((n_files + 1))
        [ ! -f "./$3" ] || n_here=$((n_here + 1))
    }
    files
    printf 'files\t%s\t%s\n' "$n_here" "$n_files"
)
# at_work WHAT: a lane says what it is at, for how_far
at_work() { printf '%s\t%s\t%s\n' "$1" "$file" "$peer" >".datacollect/lane-$lane"; }
# waits_for PATH WORDS: a lane asks a host that it has not heard of in this start, for who_is_silent; PATH is what the
# files of its answer are called after. waits_no_more: the answer is there, or the try has failed.
waits_for() {
    [ "$heard" != "$peer" ] || return 0
    clock
    printf '%s %s\n%s\n%s\n' "$now_cs" "$peer" "$2" "$1" >".datacollect/waits-$lane"
}
waits_no_more() { [ ! -s ".datacollect/waits-$lane" ] || : >".datacollect/waits-$lane"; }
# who_is_silent: names each host, once, of which nothing has come for two seconds since a lane asked it first
who_is_silent() {
    clock
    for each in .datacollect/waits-*; do
        [ -s "$each" ] && {
            read -r since_cs whom && [ $((now_cs - since_cs)) -ge 200 ] && read -r limit && asked=$(cat)
        } <"$each" || continue
        case $judged in *"<$whom>"*) continue ;; esac
        if ! has_answered "$asked" "$each"; then
            # Its lane may have gone on meanwhile, and have moved what had come.
            read -r again <"$each" && [ "$again" = "$since_cs $whom" ] || continue
            asked=${asked#"$partial/"} for_s=$(((now_cs - since_cs) / 100))
            say "waiting for $whom: nothing of ${asked%.datacollect-*} has come for $for_s s;" \
                "tried again after $connect_s s without a connection or $idle_s s without a byte, $limit"
        fi
        judged="$judged<$whom>"
    done
}
# lacks WORDS: a relay's server says that a mark is not there, for who_lacks; the first time of many counts.
# lacks_no_more: it has answered otherwise, or is asked no more
lacks() {
    [ ! -s ".datacollect/lacks-$lane" ] || return 0
    clock
    printf '%s %s\n%s\n' "$now_cs" "$peer" "$1" >".datacollect/lacks-$lane"
}
lacks_no_more() { [ ! -s ".datacollect/lacks-$lane" ] || : >".datacollect/lacks-$lane"; }
# who_lacks: names each relay, once, whose server has said so for a minute: its script may not run, or its server
# may remember for minutes what was not there
who_lacks() {
    clock
    for each in .datacollect/lacks-*; do
        [ -s "$each" ] && {
            read -r since_cs whom && [ $((now_cs - since_cs)) -ge $((most_lacking_s * 100)) ] && answers=$(cat)
        } <"$each" || continue
        case $named in *"<$whom>"*) continue ;; esac
        say "$whom $answers: is its script running, and does its server show new files at once" \
            "(rclone: --dir-cache-time 0s)?"
        named="$named<$whom>"
    done
}
# how_far: a line: how much is here, the rate since the line before, how long the rest takes at the highest and the
# lowest rate of the last ten lines, never less than the plan has left, since start times are kept; and what lanes
# are at. $pace has the times and the bytes of these lines.
how_far() {
    {
        cat "$pace"
        survey
        for each in .datacollect/lane-*; do [ ! -f "$each" ] || sed -n 's/^/lane\t/;1p' "$each" 2>/dev/null; done
    } | awk -F '\t' -v pace="$pace" -v now="$(date +%s)" -v began="$started" -v lasts_s="$predicted_s" "$words"'
        function later(s) { return s > began + lasts_s - now ? s : began + lasts_s - now }
        function rated(to_s, to_bytes) {
            rate = to_s > before_s ? (to_bytes - before_bytes) / (to_s - before_s) : 0
            if (rate > 0 && (low == 0 || rate < low)) low = rate
            if (rate > high) high = rate
        }
        $1 == "pace" { if (n_lines++) rated($2, $3); before_s = $2; before_bytes = $3; line[n_lines] = $0; next }
        $1 == "files" { files = $3 ? ", " $2 " of " $3 " files" : ""; next }
        $1 == "lane" { if (n_lanes++ < 3) lanes = lanes "; " $2 " " $3 " from " $4; next }
        { all += $1; here += $2 }
        END {
            line[++n_lines] = "pace\t" now "\t" here
            for (i = n_lines > 10 ? n_lines - 9 : 1; i <= n_lines; i++) print line[i] > pace
            printf "%d %%: %s of %s%s", all ? 100 * here / all : 100, scaled(here, "B"), scaled(all, "B"), files
            if (n_lines > 1) { rated(now, here); printf ", %s", (rate > 0) ? scaled(8 * rate, "bit/s") : "nothing since the last line" }
            if (low > 0 && here < all) {
                least = lasts(later((all - here) / high)); most = lasts(later((all - here) / low))
                printf ", %s left", least != most ? least " to " most : (least ~ /^less/ ? "" : "about ") least
            }
            print lanes ((n_lanes > 3) ? "; and " n_lanes - 3 " more" : "")
        }'
}
# tell_now_and_then: looks every second; holds no lock, and ends with whoever started it, however that ends
tell_now_and_then() {
    settled=${!-}
    trap 'end; exit' TERM
    trap '' INT HUP
    pace=.datacollect/pace
    : >"$pace"
    how_far >/dev/null
    read -r looks look_s <<END
$(LC_ALL=C awk -v s="$say_s" 'BEGIN { n = s > 1 ? int(s + 0.999) : 1; print n, s / n }')
END
    judged='' named='' looked=0
    while pause "$look_s" && ! is_stopped && kill -0 "$$" 2>/dev/null; do
        who_is_silent
        who_lacks
        looked=$((looked + 1))
        [ $((looked % looks)) -ne 0 ] || say "$(how_far)"
    done
}
# would_do: what --dry-run says
would_do() {
    survey | awk -F '\t' -v host="$host" -v by="$command" -v predicted_s="$predicted_s" "$words"'
        $1 == "files" { next }
        { all += $1; here += $2 }
        $2 < $1 {
            if (!($4 in n)) { order[++n_peers] = $4; first[$4] = $3 }
            n[$4]++; bytes[$4] += $1 - $2
            if ($3 < first[$4]) first[$4] = $3
        }
        END {
            for (i = 1; i <= n_peers; i++) {
                peer = order[i]
                printf "%s: would fetch %s from %s in %d pieces by %s, the first %s after the start\n", host,
                    scaled(bytes[peer], "B"), peer, n[peer], by, lasts(first[peer])
            }
            printf "%s: %s of %s are here already", host, scaled(here, "B"), scaled(all, "B")
            if (predicted_s != "") printf "; the last byte is expected %s after the start", lasts(predicted_s)
            print "; nobody was asked, and nothing is written"
        }'
}
# What a lane has spent its time on, in hundredths of a second; of each request what was more than its bytes take.
relay_cs=0 pause_cs=0 tool_cs=0 planned_cs=0 n_requests=0 least_cs=
spend() { # spend WHAT: the time since $since_cs
    clock
    eval "$1=\$(($1 + now_cs - since_cs))"
    since_cs=$now_cs
}
note_request() { # note_request BYTES
    more_cs=$((now_cs - asked_cs - $1 * 100 / rate)) n_requests=$((n_requests + 1))
    planned_cs=$((planned_cs + $1 * 100 / rate))
    [ "${least_cs:-$more_cs}" -lt "$more_cs" ] || least_cs=$more_cs
}
leave_times() { [ "$n_requests$relay_cs" = 00 ] || echo "$(date +%s) $relay_cs $pause_cs $tool_cs $planned_cs $n_requests $least_cs" >>.datacollect/times; }
# how_long: compares the time since the plan's start with what was predicted; where it is off by more than a half,
# what the lane that ended last has spent most of the rest on, or that this start began late
how_long() {
    [ -n "$predicted_s" ] && [ -s .datacollect/times ] || return 0
    before_s=0
    [ -z "$is_again" ] || before_s=$((${start%-*} - started))
    sort -n .datacollect/times | awk -v host="$host" -v took="$(($(date +%s) - started))" -v predicted="$predicted_s" -v before="$before_s" "$words"'
        { relay = $2 / 100; pauses = $3 / 100; more = ($4 - $5) / 100; n = $6; each = $7 > 0 ? $7 / 100 : 0 }
        END {
            printf "%s: took %s, %s predicted", host, lasts(took), lasts(predicted)
            if (took * 1.5 >= predicted && took <= 1.5 * predicted || took < 2 && predicted < 2) { print ""; exit }
            if (took < predicted) { print ": what it asked for was there, or came faster than planned"; exit }
            beside = each * n; slower = more - beside; rest = took - predicted
            if (before > relay && before > pauses && before > more) why = "it was started again meanwhile"
            else if (relay >= pauses && relay >= more) why = sprintf("%s were spent on waiting for relays", lasts(relay))
            else if (pauses >= more) why = sprintf("%s were spent between tries", lasts(pauses))
            else if (beside >= slower) why = sprintf("each of %d requests took %.2g s beside its bytes (start-up, latency); fewer and larger pieces cost less of it", n, each)
            else why = sprintf("bytes came slower than planned, which cost %s", lasts(slower))
            print ": " why
        }' >&2
}
