# ---- rclone: remotes and credentials are in its configuration ---------------------------------------

command=rclone
remedy='Debian, Ubuntu: apt install rclone'

fetch() {
    if [ "$bytes" -eq "$size" ] && [ "$there" -eq 0 ]; then
        run rclone copyto --retries 1 --bwlimit "${rate}B" -- "$address" "$mark.tmp" && mv -f "$mark.tmp" "$part"
    else
        run rclone cat --retries 1 --bwlimit "${rate}B" --offset $((offset + there)) \
            --count $((bytes - there)) -- "$address" >>"$part"
    fi
}
is_there() { run rclone copyto --retries 1 --low-level-retries 1 -- "$1" "$2" 2>/dev/null && rm -f "$2"; }
