# ---- Whom a lane asks: what cannot get better, and when nothing more is asked ------------------------
# A lane asks one host. It has heard from it once there was any answer, be it that a file is not there.

# What is known of whom a lane asks.
peer='' heard='' hopeless='' silent=0 is_told=''
# After so many pieces in a row without an answer a lane ends.
most_silent=20
# A try lasts so long without a connection, and without a byte.
connect_s=20 idle_s=120

# name_peer: scheme and host of an address, or its remote
name_peer() {
    case "$command $address" in
    # A remote that is described where it is used.
    rclone\ *=\'*\':*) peer=${address%%\':*}\' ;;
    *://*) peer=${address#*://} && peer=${address%%://*}://${peer%%/*} ;;
    rclone\ :*) peer=${address#:} && peer=:${peer%%:*} ;;
    *) peer=${address%%:*} ;;
    esac
}
forget_try() { why='' never='' whole_only='' is_stale='' is_silent=''; }
# in_words CODE: how the tool has ended, and what it has said of that last
in_words() {
    LC_ALL=C awk -v begins="exit code $1 of $command" '
        /^$|^rsync error: |^rsync: connection unexpectedly closed|^Warning: Permanently added / { next }
        is_told { next }
        # Advice follows it.
        /^curl: \([0-9]+\)/ { is_told = 1 }
        { sub(/\r$/, ""); sub(/^[0-9\/]+ [0-9:]+ /, ""); gsub(/[^ -~]/, "?"); said = ": " substr($0, 1, 300) }
        END { print begins said }' "$told" 2>/dev/null || echo "exit code $1 of $command"
}
# judge_words: what a tool without status codes says of names, accounts and files
judge_words() {
    is_silent=yes
    case $why in
    *'emporary failure in name resolution'* | *'max connections'*) ;;
    *'ould not resolve host'* | *'no such host'* | *'ame or service not known'* | *'nodename nor servname'* | \
        *"didn't find section"* | *'invalid characters'* | *'Permission denied ('* | *'Host key verification failed'* | \
        *'unable to authenticate'* | *'auth failed on module'* | *'Unknown module'* | *'access denied to'* | \
        *InvalidAccessKeyId* | *SignatureDoesNotMatch* | *NoSuchBucket*) never=yes ;;
    *AccessDenied* | *Forbidden* | *Unauthorized* | *NoSuchKey*) never=yes is_silent='' ;;
    esac
}
# note_peer: what a try has told of whom it asked. Who was heard of in this start has its name still.
note_peer() {
    if [ -z "$is_silent" ]; then
        heard=$peer silent=0 is_told=''
    elif [ -n "$never" ] && [ "$heard" = "$peer" ]; then
        never=''
    elif [ -n "$never" ]; then
        hopeless=$peer
    fi
    if [ -n "$why" ] && [ -z "$never$whole_only$is_told" ] && [ "$tries" -lt "$most_tries" ]; then
        is_told=yes
        say "$address: $why; it is tried again after ${wait_s:-$every_s} s, $((most_tries - tries)) times at most"
    fi
}
# is_over: whether a piece is to be given up. Once nobody has answered for one, the next have a try each.
is_over() {
    [ -n "$never" ] || [ "$tries" -ge "$most_tries" ] || [ "$spent" -gt "$bytes" ] ||
        { [ "$tries" -gt 0 ] && [ "$silent" -gt 0 ] && [ -n "$is_silent" ]; }
}
# give_up WORDS: names a piece that does not come. A relay tells whoever waits for it.
give_up() {
    say "$1"
    if [ -n "$is_silent" ]; then
        silent=$((silent + 1))
        [ "$silent" -lt "$most_silent" ] || hopeless=$peer
    fi
    [ "$partial" != . ] || printf 'datacollect-gave-up/1 %s %s\n' "$offset" "$bytes" >"$mark"
    return 1
}
# forget_given_up: what an earlier start of a relay has told of what it gave up
forget_given_up() {
    # shellcheck disable=SC2016 # the inner shell's own variables
    [ "$partial" != . ] || find . -name '*.datacollect-*[0-9]' -type f -size -2 -exec sh -c '
        for each do
            read -r line <"$each"
            case $line in "datacollect-gave-up/1 "*) rm -f "$each" ;; esac
        done' sh {} +
}
