# ---- What is here, and what proves it -------------------------------------------------------------
# A mark FILE.datacollect-OFFSET-BYTES beside what is not whole yet says what the bytes of a range are:
# datacollect-piece/1 OFFSET BYTES SHA256. It is written when they are on disk; others wait for it.

bytes_of() { if [ -f "$1" ]; then wc -c <"$1"; else echo 0; fi; }
sha256() { $summer | cut -c 1-64; }
# range_sha256 OFFSET BYTES: of the file that is not whole yet
range_sha256() { dd if="$whole" bs=1048576 iflag=skip_bytes,count_bytes skip="$1" count="$2" status=none | sha256; }
# put_in PART WHOLE OFFSET: writes a part to its place in a file, down to the disk
put_in() { dd if="$1" of="$2" bs=1048576 seek="$3" oflag=seek_bytes conv=notrunc,fsync status=none; }
synced() { dd if=/dev/null of="$1" conv=notrunc,fsync status=none; }

name_piece() { mark=$whole.datacollect-$offset-$bytes part=$mark.part new=$mark.new head=$mark.head at=$mark.at told=$mark.told; }
write_mark() { printf 'datacollect-piece/1 %s %s %s\n' "$offset" "$bytes" "$1" >"$head" && mv -f "$head" "$mark"; }
is_mark() { [ -s "$1" ] && read -r line <"$1" && case $line in "datacollect-piece/1 $2 $3 "*) ;; *) false ;; esac; }
marks() {
    for each in "$whole.datacollect-"[0-9]*[0-9]; do
        [ -s "$each" ] && read -r line <"$each" && printf '%s\n' "$line"
    done
}
# covered LOW HIGH: whether marks, of whatever plan, leave no gap between these places
covered() {
    [ "$(bytes_of "$whole")" -ge "$2" ] && marks | sort -n -k 2 | awk -v at="$1" -v high="$2" '
        $1 == "datacollect-piece/1" && $2 <= at && $2 + $3 > at { at = $2 + $3 } END { exit !(at >= high) }'
}
# recheck: reads all marked ranges of a file again; one whose bytes are others is given up
recheck() {
    sound=0
    for range in $(marks | awk '$1 == "datacollect-piece/1" { print $2 "-" $3 }'); do
        read -r _ low length sum <"$whole.datacollect-$range"
        [ "$(range_sha256 "$low" "$length")" != "$sum" ] || continue
        say "$file: its $length bytes from $low on are not those that came: they are given up"
        rm -f "$whole.datacollect-$range"
        sound=1
    done
    return "$sound"
}
# first_version: that of a file's first bytes, which is kept with it, and the start in which they came
first_version() { sed -n 1p "$whole.datacollect-version" 2>/dev/null; }
is_of_earlier_start() { [ "$(sed -n 2p "$whole.datacollect-version" 2>/dev/null || echo "$start")" != "$start" ]; }
same_version() {
    # One of several lanes is the first; the version appears with all that it says.
    printf '%s\n%s\n' "$1" "$start" >"$mark.first"
    ln "$mark.first" "$whole.datacollect-version" 2>/dev/null || [ -s "$whole.datacollect-version" ] ||
        cp "$mark.first" "$whole.datacollect-version" # where there are no links
    rm -f "$mark.first"
    [ "$(first_version)" != "$1" ] || return 0
    why="the file has changed at its server: its first bytes were of $(first_version), now it is of $1"
    is_stale=yes
    return 1
}
# begin_again: what an earlier start has left of a file is given up once, and fetched again in this one
begin_again() {
    is_of_earlier_start || return 0
    say "$file: what came of it in an earlier start is given up"
    : >"$whole.datacollect-stale" && : >.datacollect/again
}
give_up_stale() {
    # shellcheck disable=SC2016 # the inner shell's own variables
    find "$partial" -name '*.datacollect-stale' -exec sh -c '
        for each do rm -rf "${each%.datacollect-stale}" "${each%stale}"*; done' sh {} +
}
in_place() { [ "$partial" != . ] && [ -f "./$file" ] && [ "$(bytes_of "./$file")" -eq "$size" ] && is_proved_in_place; }
# is_proved_in_place: whether a file under its name has its SHA-256; read once, as long as it is not written to or
# replaced. Another one is called otherwise, as datacollect progress --recheck does.
is_proved_in_place() {
    [ -n "${hash-}" ] || return 0
    placed=.datacollect/placed/$file number=$(number_of)
    if [ -s "$placed" ] && [ "$(cat "$placed")" = "$hash $number" ] && [ -z "$(find -H "./$file" -prune -newer "$placed")" ]; then return 0; fi
    if [ "$(sha256 <"./$file")" = "$hash" ]; then
        note_placed
        return 0
    fi
    # Another lane may have put the right one there meanwhile.
    [ "$(number_of)" != "$number" ] || { mv -f "./$file" "./$file.datacollect-wrong" && say "$file: its SHA-256 is not $hash; it is now called $file.datacollect-wrong"; }
    return 1
}
# shellcheck disable=SC2012 # its number comes before its name
number_of() { ls -dLi "./$file" 2>/dev/null | awk 'NR == 1 { print $1 }'; }
note_placed() { { mkdir -p ".datacollect/placed/${file%/*}" && printf '%s\n' "$hash $(number_of)" >".datacollect/placed/$file"; } 2>/dev/null || :; }
# Whether a piece is here: a mark whose data are gone counts no more.
has_come() {
    ! in_place || return 0
    is_mark "$mark" "$offset" "$bytes" || is_mark "$whole.datacollect-0-$size" 0 "$size" || return 1
    [ "$(bytes_of "$whole")" -lt $((offset + bytes)) ] || return 0
    rm -f "$mark" "$whole.datacollect-0-$size"
    return 1
}

# absorb: what an earlier plan had begun of a file counts as ranges of their own: new plans ask for the rest
absorb() {
    ready='' hash='' spent=0 tries=0 there=0
    for new in "$whole.datacollect-"*.new; do
        offset=${new##*.datacollect-} bytes=${new##*-} && offset=${offset%%-*} bytes=${bytes%.new}
        [ -s "$new" ] && name_piece && [ -s "$at" ] && [ ! -e "$mark.ready" ] || continue
        there=$(bytes_of "$part")
        keep 137
    done
    for begun in "$whole.datacollect-"*.part "$whole.datacollect-0-$size.tmp"/*; do
        # What a relay sent is proved by the whole piece alone.
        [ -s "$begun" ] && [ ! -e "${begun%.part}.ready" ] && [ "${begun%.aria2}" = "$begun" ] || continue
        offset=${begun##*.datacollect-} offset=${offset%%-*} bytes=$(bytes_of "$begun")
        name_piece
        put_in "$begun" "$whole" "$offset" && write_mark "$(sha256 <"$begun")" && rm -f "$begun"
    done
}
again='run datacollect progress, and make a new plan from what is there'
# have OFFSET BYTES FILE_BYTES FILE ADDRESS: tests what the plan takes for granted here; relays mark it for others
have() {
    size=$3 file=$4 whole=$partial/$4 address=$5 hash=''
    ! in_place || return 0
    absorb
    offset=$1 bytes=$2
    name_piece
    if covered "$offset" $((offset + bytes)); then
        if [ "$partial" != . ] || is_mark "$mark" "$offset" "$bytes"; then return 0; fi
        if recheck && write_mark "$(range_sha256 "$offset" "$bytes")"; then return 0; fi
    fi
    say "the plan takes $bytes bytes of $file from $offset on for granted here, but they are not: $again"
    return 1
}

# finish BYTES SHA256 FILE OFFSET-BYTES...: moves a file to its place once all of it is there and right
finish() {
    size=$1 hash=$2 file=$3 whole=$partial/$3
    shift 3
    ! in_place || return 0
    for range in "$@"; do
        [ -s "$whole.datacollect-$range" ] || [ -s "$whole.datacollect-0-$size" ] || return 1
    done
    mkdir -p "${whole%/*}" && mkdir "$whole.datacollect-lock" 2>/dev/null || return 1
    [ "$size" -gt 0 ] || : >"$whole"
    if covered 0 "$size" && is_right; then
        place=./$file
        mkdir -p "${place%/*}" && mv -f "$whole" "$place" && { [ -z "$hash" ] || note_placed; } &&
            rm -rf "$whole.datacollect-"[0-9sv]*
    fi
    rmdir "$whole.datacollect-lock"
    in_place
}
# is_right: proves a file by its SHA-256, or its ranges by their marks; what is wrong is given up
is_right() {
    if [ "$(bytes_of "$whole")" -ne "$size" ]; then
        say "$file: has $(bytes_of "$whole") bytes, not $size; all of it is given up"
    elif [ -n "$hash" ] && [ "$(sha256 <"$whole")" = "$hash" ]; then
        return 0
    elif ! recheck; then
        : >.datacollect/again
        return 1
    elif [ -z "$hash" ]; then
        return 0
    else
        say "$file: its SHA-256 is not $hash, though each range is as it came; all of it is given up: start again, or $again"
        begin_again
    fi
    rm -rf "$whole" "$whole.datacollect-"[0-9sv]*
    return 1
}
