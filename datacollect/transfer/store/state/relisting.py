"""Update of a source's known files by a whole new listing: in one order, all at once.

Numbers are those of `FileState`.
"""

from __future__ import annotations

from datacollect.transfer.protocol.source import GONE

_LISTED_COLUMNS = (
    "source, path, bytes, mtime_s, mtime_ns, inode, tag, sha256, mode, extents, data_bytes"
)
_SAME = """EXISTS (SELECT 1 FROM listed AS l WHERE l.source = files.source AND l.path = files.path
    AND l.bytes = files.bytes AND l.mtime_s = files.mtime_s AND l.mtime_ns = files.mtime_ns
    AND l.inode = files.inode AND l.tag IS files.tag
    AND (l.sha256 IS NULL OR files.sha256 IS NULL OR l.sha256 = files.sha256))"""
_NAMED = "EXISTS (SELECT 1 FROM listed AS l WHERE l.source = files.source AND l.path = files.path)"
_L = "FROM listed AS l WHERE l.source = files.source AND l.path = files.path"

# What the start asks for: of the rest its listing says nothing.
_VIEWED = "id NOT IN (SELECT what FROM out_of_view WHERE kind = 'file')"

# Files that are waited for or missing, and not listed any more.
NOT_LISTED = f"""SELECT id, path FROM files WHERE source = ? AND state IN (0, 3) AND NOT {_NAMED}
    AND {_VIEWED}"""

END_OF_LISTING = (
    f"""UPDATE files SET state = 2 WHERE source = :source AND {_VIEWED} AND
        ((state IN (0, 1, 4) AND {_NAMED} AND NOT {_SAME}) OR (state = 3 AND {_NAMED})
        OR (state = 4 AND NOT {_NAMED}))""",
    f"""UPDATE files SET state = 3, why = '{GONE}' WHERE source = :source
        AND state IN (0, 3) AND NOT {_NAMED} AND {_VIEWED}""",
    f"""UPDATE files SET is_gone = NOT {_NAMED} WHERE source = :source AND state = 1
        AND is_gone = {_NAMED} AND {_VIEWED}""",
    # Facts that are listed besides, and make no other file of it.
    f"""UPDATE files SET mode = (SELECT l.mode {_L}), sha256 = (SELECT l.sha256 {_L})
        WHERE source = :source AND state IN (0, 1, 4) AND EXISTS (SELECT 1 {_L}
            AND (l.mode IS NOT files.mode OR l.sha256 IS NOT files.sha256))""",
    f"""UPDATE files SET extents = (SELECT l.extents {_L}),
            data_bytes = (SELECT l.data_bytes {_L})
        WHERE source = :source AND state IN (0, 4) AND offset IS NULL AND {_NAMED}
        AND (SELECT l.extents {_L}) IS NOT extents""",
    f"""INSERT INTO files ({_LISTED_COLUMNS}) SELECT {_LISTED_COLUMNS} FROM listed AS l
        WHERE source = :source AND NOT EXISTS (SELECT 1 FROM files AS f WHERE
            f.source = l.source AND f.path = l.path AND f.state IN (0, 1, 4)) ORDER BY path""",
    f"""UPDATE files SET why = NULL WHERE source = :source AND state = 0 AND why IS NOT NULL
        AND {_VIEWED}""",
    """DELETE FROM left_out WHERE source = :source AND rowid NOT IN
        (SELECT what FROM out_of_view WHERE kind = 'name')""",
    # What its source does not confirm is named where it is done: what has yet to come names itself.
    """INSERT INTO left_out SELECT source, path, why, path_hex FROM listed_out AS o
        WHERE source = :source AND (NOT is_kept OR EXISTS (SELECT 1 FROM files AS f WHERE
            f.source = o.source AND f.path = o.path AND f.state = 1))""",
    """DELETE FROM folders WHERE source = :source AND path NOT IN
        (SELECT what FROM out_of_view WHERE kind = 'folder')""",
    """INSERT OR REPLACE INTO folders (source, path, mode, mtime_s, mtime_ns)
        SELECT * FROM listed_folders WHERE source = :source""",
    "UPDATE sources SET why = NULL WHERE id = :source",
    "DELETE FROM listed WHERE source = :source",
    "DELETE FROM listed_out WHERE source = :source",
    "DELETE FROM listed_folders WHERE source = :source",
)
