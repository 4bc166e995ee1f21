# ---- What runs in the background, and ends with its lane ------------------------------------------
# $! is its number from the first instant on; a variable of our own would be so one command later.
settled=
settle() {
    wait "$!"
    code=$?
    settled=$!
    return "$code"
}
# A process that has only just begun may lose the signal that ends it: then it finds this file.
is_stopped() { [ -e .datacollect/over ]; }
# end PID...: ends these, and what has begun last; waits for all
end() {
    [ "${!-}" = "$settled" ] || set -- "$@" "$!"
    [ "$#" -eq 0 ] || kill "$@"
    wait
} 2>/dev/null
pause() {
    (is_stopped || exec sleep "$1") &
    settle
}
# run BYTES TOOL...: the tool may write so many bytes into a file, or 64 KiB, and hardly more.
run() {
    (
        trap '' XFSZ
        ulimit -f $((($1 > 65536 ? $1 : 65536) / 512 + 2)) 2>/dev/null
        shift
        is_stopped || exec "$@"
        exit 143
    ) &
    settle
}
